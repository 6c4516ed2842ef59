// Messages between hosts: links over UCX. One worker asks (the origin half: any thread, one at a time), another serves
// (the target half: whoever serves, one thread at a time), so that a reply that a thread spins for wakes no agent.
//
// What travels is at most one fragment of UCX's; whatever is lost with a connection goes again over the next, and each
// request is served once. A peer that is silent for too long is given up: its requests are answered peer_failed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/credit_pool.hpp"
#include "transport/link/receiver.hpp"
#include "transport/link/reply_care.hpp"
#include "transport/link/sender.hpp"
#include "transport/network.hpp"
#include "transport/ucx/ucx_connections.hpp"
#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"

namespace farsum {

class UcxTransport final : public Network {
 public:
  struct Options {
    Rank rank = 0;
    std::uint32_t ranks = 1;  // of the job
    link::Secret secret{};
    UcxOptions ucx;
    std::string library;  // FARSUM_UCX_LIBRARY
    std::uint64_t receive_bytes = std::uint64_t{64} << 20;
    std::uint64_t timeout_ns = 30'000'000'000;  // of a peer's silence; 0: never
    std::function<std::uint64_t()> now_ns;      // empty: the monotonic clock
    // As NetworkOptions has them; may be empty.
    std::function<void(Rank, const std::string&)> on_lost;
    std::function<void()> on_hand_over;
  };

  static Result<std::unique_ptr<UcxTransport>> create(Options options);
  ~UcxTransport() override;

  std::span<const std::byte> address() const override;
  Status let_in_only(const std::vector<std::uint32_t>& hosts) override;
  // Nothing is sent before the first request to it, or open(). This rank itself is passed over, and so is a peer that
  // is known.
  void introduce(Rank peer, std::span<const std::byte> address) override;
  // Connects to a peer that was introduced, so that its first request finds room.
  void open(Rank peer);
  link::LinkState state(Rank peer) const;

  // A peer that was not introduced has no room ever, and gets no letters.
  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  // The handler may not call this transport. Looks after the time of this peer's link, too.
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler) override;
  void abandon(Rank peer) override;
  void hand_over() override;
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override;
  void deliver_letters_to(LetterHandler& handler) override {
    // Publishes the handler; pairs with the acquire in TargetHalf::on_letter.
    target_.letters.store(&handler, std::memory_order_release);
  }
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override;
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;

  void expect_receipts() override;
  bool tick() override;
  std::uint64_t next_deadline_ns() override;
  bool is_unattended(Threads threads) override;

  int request_descriptor() const override;
  Result<bool> arm_requests() override;
  int reply_descriptor() const override;
  Result<bool> arm_replies() override;

  void close(RequestHandler& handler) override;
  NetworkCounters counters() const override;
  // Kept for a rank that was introduced, and for one that has asked, their addresses and buffers for messages apart.
  static std::uint64_t bytes_of_known_peer();
  static std::uint64_t bytes_of_asking_peer();
  // Frames that were not of this job. Any thread may call.
  std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }

 private:
  // A link to a peer. It is in OriginHalf::busy while it has a deadline: the others cost nothing.
  struct Asking {
    Asking(const link::SenderOptions& options, link::Wire& wire) : peer(options.peer), link(options, wire) {}
    Rank peer;
    link::LinkSender link;
    bool is_busy = false;
    bool is_holding = false;             // it is in OriginHalf::holding, as long as it may hold something back
    bool is_lost = false;                // and this was noted
    bool has_undelivered = false;        // replies since it was last polled, or room for what found none
    bool has_short_undelivered = false;  // and some in a short frame
  };

  class Turn;
  // Each half hears its worker.
  struct OriginHalf final : UcxConnections::Owner {
    explicit OriginHalf(UcxTransport& transport) : owner(transport) {}
    void on_frame(std::span<const std::byte> bytes) override;
    void on_sent(Rank peer, link::FrameId id, bool ok) override;
    void on_broken(Rank peer, std::uint32_t epoch) override;
    void on_disconnected(Rank peer, std::uint32_t epoch) override;
    Asking* find(Rank peer) const { return peer < links.size() ? links[peer].get() : nullptr; }
    void note(Asking& asking) noexcept;
    void drop_idle();
    void note_undelivered(Asking& asking);
    void drop_undelivered(Asking& asking);
    // Of the links that were busy when drop_idle was last called, or have been since. Nobody looks for what only says
    // that letters were received.
    link::ReplyCare::UnderWay under_way() const;
    bool has_letters_to_send() const;
    void send_held(Asking& asking);

    UcxTransport& owner;
    link::FullFrames full_frames;
    std::vector<std::unique_ptr<Asking>> links;  // by rank; null where it was not introduced
    std::vector<Asking*> busy;
    std::vector<Asking*> holding;
    link::ReplyCare care;
    std::unique_ptr<UcxConnections> connections;
  };
  struct TargetHalf final : UcxConnections::Owner, LetterHandler {
    explicit TargetHalf(UcxTransport& transport) : owner(transport) {}
    void on_frame(std::span<const std::byte> bytes) override;
    void on_sent(Rank peer, link::FrameId id, bool ok) override;
    void on_broken(Rank peer, std::uint32_t epoch) override;
    void on_disconnected(Rank peer, std::uint32_t epoch) override;
    void on_letter(Rank from, std::span<const std::byte> letter) noexcept override;
    link::LinkReceiver* receiver(Rank peer);
    link::LinkReceiver& receiver_made(Rank peer);
    void touch(Rank peer);
    void end_turn();

    UcxTransport& owner;
    link::FullFrames full_frames;
    std::unique_ptr<link::CreditPool> pool;
    std::map<Rank, link::LinkReceiver> receivers;
    std::vector<Rank> touched;                     // with something to tell at the turn's end
    std::vector<Rank> parking;                     // with requests that are to be served again
    Turn* handler = nullptr;                       // while poll_requests runs
    std::atomic<LetterHandler*> letters{nullptr};  // any thread may set it
    std::unique_ptr<UcxConnections> connections;
  };

  class Driving;

  explicit UcxTransport(Options options);
  Status open_workers();
  bool let_through(std::span<const std::byte> bytes, link::Frame& frame);
  template <class Link, class... Arguments>
  void pass_on(Link& link, const link::Frame& frame, Arguments&&... arguments);
  link::LinkOptions link_options(Rank peer) const;
  std::size_t take_replies(Asking& asking, ReplyHandler& handler);
  void act(link::ReplyCare::Action action);
  std::string why(const Asking& asking) const;
  void look_at_time(Asking& asking, std::uint64_t now_ns);
  void look_after_letters(const Asking& asking);
  void hand_over_held();
  bool has_said_goodbye();
  bool has_heard_goodbye();
  void rest() const;

  Options options_;
  std::unique_ptr<UcxLibrary> library_;
  std::unique_ptr<UcxContext> context_;
  std::size_t frame_bytes_ = 0;
  Capabilities capabilities_;

  mutable std::mutex drive_;  // guards the origin half and what is below; only on_lost takes others under it
  OriginHalf origin_{*this};
  bool to_hand_over_ = false;                // on_hand_over is to be called
  std::uint64_t agent_comes_at_ns_ = never;  // as next_deadline_ns() told last, or earlier

  TargetHalf target_{*this};
  std::atomic<std::uint64_t> strangers_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> peers_{0};
  std::atomic<std::uint64_t> peer_bytes_{0};
};

}  // namespace farsum
