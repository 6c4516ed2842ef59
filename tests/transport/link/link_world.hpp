// Links in virtual time, from one seed: senders and receivers joined by connections that delay, double, reorder and are
// cut, with an engine at each target that answers again and later, and takes letters. It checks what a link promises
// after every event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "made_frames.hpp"
#include "transport/link/receiver.hpp"
#include "transport/link/sender.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum::link {

inline constexpr std::uint64_t us = 1000, ms = 1000 * us, s = 1000 * ms;

struct LinkPlan {
  Rank from = 0, to = 0;
  std::size_t requests = 100;
  std::size_t waits = 0;  // requests besides these that wait until a later request releases them
  std::size_t most_message_bytes = 2000;
  std::size_t most_reply_bytes = 2000;
  bool waits_first = false;  // no request is posted before all waits were
  std::size_t letters = 0;
};

struct WorldOptions {
  std::uint64_t seed = 1;
  std::vector<LinkPlan> links;
  std::uint64_t budget_bytes = 64 << 20;  // of each target
  std::uint64_t peers = 1;
  std::uint64_t most_window = 2 << 20;
  std::uint64_t may_wait_bytes = 131072;
  std::size_t frames_in_wire = 16;
  std::uint64_t timeout_ns = 30 * s;
  std::uint64_t doubled_once_in = 20, reordered_once_in = 20, again_once_in = 10;  // 0: never
  std::size_t cuts = 0;                               // connections broken at random instants
  std::uint64_t down_ns = 0;                          // how long nothing passes after a cut, at most
  SimTime stopped_from_ns = 0, stopped_until_ns = 0;  // meanwhile no target takes in or does anything
  Omission omission = Omission::none;
};

// Every other seed has nothing pass for a while after a cut.
inline WorldOptions cut_often(WorldOptions options) {
  options.cuts = 6;
  options.down_ns = options.seed % 2 * 2 * s;
  return options;
}

class LinkWorld;

// One direction of a link's connection, as one half sees it.
class SimWire : public Wire {
 public:
  SimWire(LinkWorld& world, std::size_t link, bool to_origin) : world_(world), link_(link), to_origin_(to_origin) {}

  void send(FrameId id, std::uint32_t epoch, std::span<const std::span<const std::byte>> pieces) override;
  void connect(std::uint32_t epoch, std::span<const std::byte> address) override;
  void disconnect(std::uint32_t epoch) override;

  void cut();  // what is on its way is lost, or comes late; the half learns of it, or not
  bool is_connected() const { return connected_; }

 private:
  struct Flight {
    FrameId id;
    std::vector<std::span<const std::byte>> pieces;
    std::vector<std::byte> copy;  // taken when it leaves the half's memory
    std::uint64_t hash = 0;
    bool left = false;  // on_sent was called
    bool delivered = false, lost = false;
    SimTime not_before = 0;
  };
  using Shared = std::shared_ptr<Flight>;

  void check_limits(FrameId id);
  void check_header(const FrameHeader& header);
  void take_copy(Flight& flight);
  void deliver(const Shared& flight);
  void leave(const Shared& flight, bool ok);
  void call_on_sent(FrameId id, bool ok);
  void end(std::uint32_t epoch);

  LinkWorld& world_;
  std::size_t link_;
  bool to_origin_;
  bool connected_ = false, disconnecting_ = false, cut_ = false;
  std::uint32_t epoch_ = 0;
  SimTime last_delivery_ = 0;
  std::vector<Shared> out_;
  std::uint64_t seen_ = 0, credit_ = 0, letters_ = 0;  // told last; none may fall
};

// One link with the program that posts and the engine that serves.
class SimLink : public RequestHandler, public LetterHandler {
 public:
  SimLink(LinkWorld& world, std::size_t index, const LinkPlan& plan, CreditPool& pool);

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> room,
                    ReplyToken token) override;
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override;
  void deliver(std::span<const std::byte> bytes, bool to_origin);
  void drive();  // the program: takes replies and posts
  void turn();   // the agent: serves what waits and sends what is due
  void plan_drive(SimTime delay);
  void plan_turn(SimTime delay);
  void check();
  bool is_done() const { return answered_ == tickets_.size() && posted_all() && has_all_letters(); }
  bool has_letters_to_post() const { return letters_posted_ != plan_.letters; }
  bool has_all_letters() const { return letters_taken_ == plan_.letters && !sender.has_unreceived_letters(); }
  bool posted_all() const { return waits_left_ == 0 && requests_left_ == 0; }
  void declare_dead();  // at the target, as a watch would

  SimWire to_target, to_origin;
  LinkSender sender;
  LinkReceiver receiver;
  std::uint64_t failed = 0;    // requests answered Code::peer_failed
  bool program_stops = false;  // takes and posts nothing more

 private:
  struct Ticket {
    std::vector<std::byte> message, body, reply_into;
    std::size_t reply_capacity = 0, reply_bytes = 0;
    bool waits = false, first_seen = false, executed = false, answered = false;
    std::uint64_t agains = 0, put_offs = 0;
    std::span<const std::byte> kept_message;  // where the link keeps it while the request waits
  };

  static SenderOptions sender_options(const LinkWorld& world, const LinkPlan& plan);
  static ReceiverOptions receiver_options(const LinkWorld& world, const LinkPlan& plan, LetterHandler& letters);
  bool post_one(bool waits);
  std::vector<std::byte> letter_of(std::uint64_t number) const;
  bool post_letters(std::uint64_t most);
  void take();
  Served finish(Ticket& ticket, std::span<std::byte> room);
  void release_one();
  std::vector<std::byte> reply_of(std::uint64_t ticket) const;

  LinkWorld& world_;
  std::size_t index_;
  LinkPlan plan_;
  SimRandom random_;
  std::size_t requests_left_, waits_left_;
  std::vector<std::unique_ptr<Ticket>> tickets_;
  std::uint64_t next_served_ = 0, answered_ = 0;
  std::uint64_t letters_posted_ = 0, letters_taken_ = 0;
  std::vector<std::uint64_t> waiting_;  // tickets answered `later`
  std::uint64_t releases_ = 0;
  bool drive_planned_ = false, turn_planned_ = false, dead_ = false;
  std::uint32_t last_epoch_ = 0;  // of a hello that came
};

class LinkWorld {
 public:
  explicit LinkWorld(WorldOptions options);

  // Runs until all is answered, says goodbye, and returns what went wrong first, empty for nothing.
  std::string run();
  // Runs until nothing is due before `until_ns`.
  void run_until(SimTime until_ns);

  void at(SimTime when, std::function<void()> event);
  bool are_targets_stopped() const { return now >= options.stopped_from_ns && now < options.stopped_until_ns; }
  void fail(std::string_view what);
  bool has_failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

  SimTime now = 0;
  SimTime down_until = 0;
  WorldOptions options;
  SimRandom random;
  std::unique_ptr<FullFrames> full_frames = std::make_unique<FullFrames>();
  std::map<Rank, std::unique_ptr<CreditPool>> pools;
  std::vector<std::unique_ptr<SimLink>> links;
  std::uint64_t peak_used = 0, peak_held = 0;

 private:
  struct Event {
    SimTime when;
    std::uint64_t order;
    std::function<void()> run;
    bool operator>(const Event& other) const { return when != other.when ? when > other.when : order > other.order; }
  };

  bool step(SimTime until_ns);
  void plan_cuts();
  void check();

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0, steps_ = 0;
  std::string failure_;
};

}  // namespace farsum::link
