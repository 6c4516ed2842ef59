// The owner's half of the protocol: it applies the requests that arrive, inside the atomicity domain of the memory they
// name. It is driven by the agent, or by whoever has its turn. It does no I/O of its own (operands are pulled and
// results pushed through the transport), reads no clock but the one it is given for the age of leases, and never waits:
// what it cannot do now it answers with `again`, and it continues where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "memory/apply.hpp"
#include "protocol/exposure.hpp"
#include "protocol/messages.hpp"
#include "protocol/owner/proxy_locks.hpp"
#include "protocol/team_mail.hpp"
#include "transport/transport.hpp"
#include "variants/leases/owner/lease_table.hpp"

namespace farsum {

// Told when a notification or a counter of posts or completes has been bumped, so that sleepers can be woken.
class NotificationListener {
 public:
  virtual ~NotificationListener() = default;
  virtual void on_notified() = 0;
};

// One thread drives an object at a time.
class TargetService : public RequestHandler, public TransferHandler {
 public:
  struct Options {
    Rank rank = 0;
    std::uint64_t pull_bytes = 65536;  // piece in which long operands are pulled
    std::size_t pull_slots = 4;        // operands being pulled at once: bounds the memory used
    const ops::KernelSet* kernels = nullptr;
    const Liveness* liveness = nullptr;
    NotificationListener* listener = nullptr;
    const LockFreePermits* permits = nullptr;  // see LockAgent
    TeamMail* team_mail = nullptr;
    // One more than a rank that is known to be dead, or 0.
    std::function<std::uint32_t()> known_dead = nullptr;
    LeaseTable::Options leases;
    std::function<std::uint64_t()> now_ns = nullptr;  // for the age of leases; null: they do not age
  };

  TargetService(Options options, ExposureTable& exposures);
  // The transport and this object know each other; set once before serving.
  void attach(Transport& transport) { transport_ = &transport; }

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override;
  void on_transfer(std::uint64_t cookie, Transfer how) override;

  // Tells those whose locks have been granted meanwhile, and serves what they have sent behind them. Called by the
  // agent in each of its turns.
  void grant_waiting();
  bool has_waiting() const { return proxies_.has_waiting(); }
  // Whether something behind a granted lock could not be finished: the agent must come again soon.
  bool has_unfinished() const { return has_unfinished_; }
  // Lets go of the locks that a dead rank held or waited for here. False where something is left: call again.
  bool forget(Rank dead);

  std::uint64_t refused() const { return refused_; }
  const LeaseTable& leases() const { return leases_; }

 private:
  // A buffer of pull_bytes for the operand and one for the result of the piece in work.
  struct PullSlot {
    std::vector<std::byte> operand;
    std::vector<std::byte> result;
    bool busy = false;
  };
  enum class Phase : std::uint8_t { start, pulling, applying, pushing };
  // Where the request at the head of one sender's queue stands.
  struct Progress {
    Phase phase = Phase::start;
    bool transfer_under_way = false;
    Transfer transfer_result = Transfer::done;
    PullSlot* slot = nullptr;
    std::uint64_t chunk_start = 0;  // payload bytes before the chunk in work
    std::uint64_t chunk_bytes = 0;
    std::uint64_t applied = 0;        // of the chunk
    std::uint64_t next_sequence = 1;  // exactly once: what comes with a smaller one has been done
  };

  // A message whose sender does not hold the lock yet that it counts on.
  struct Parked {
    ReplyToken token;
    std::vector<std::byte> message;
    std::vector<std::byte> reply;
    Progress progress;
  };
  struct ParkedQueue {
    std::deque<Parked> messages;
    std::uint64_t bytes = 0;
  };

  enum class Step : std::uint8_t { finished, again, failed };
  struct Outcome {
    Step step = Step::finished;
    Code code = Code::ok;
  };

  // Bytes of whole elements that lie one behind the other in one region.
  struct Run {
    const ExposedRegion* region = nullptr;  // null: nothing is exposed there
    std::uint64_t at = 0;                   // in the region
    std::uint64_t bytes = 0;
    bool through_kernel = false;
  };

  Served serve(Rank from, const wire::Message& message, std::span<const std::byte> bytes,
               std::span<std::byte> reply_room, ReplyToken token, Progress& progress);
  Served serve_now(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
                   ReplyToken token, Progress& progress);
  Outcome operate(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
                  Progress& progress);
  Outcome scatter(const wire::Message& message, const Exposure& exposure, Progress& progress);
  static std::size_t count_inside(const ExposedRegion& region, std::span<const std::int64_t> offsets,
                                  std::uint64_t element_bytes);
  Outcome compare_and_swap(const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room);
  Outcome prepare_chunk(Rank from, const wire::Message& message, Progress& progress);
  Outcome apply_chunk(const wire::Message& message, const Exposure& exposure, ops::PieceCursor& unapplied,
                      std::span<std::byte> reply_room, Progress& progress);
  Outcome push_chunk(Rank from, const wire::Message& message, Progress& progress);
  Outcome apply_run(const wire::MessageHeader& header, const ExposedRegion& region, std::uint64_t offset,
                    const std::byte* operand, std::byte* result, std::uint64_t bytes, std::uint64_t& done);
  static Run first_run(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes,
                       std::uint64_t element_bytes);
  static Outcome not_taken(Applied taken);
  // How a failed transfer is told to the origin.
  static Code code_of(Transfer how);
  Outcome apply_guarded(const wire::MessageHeader& header, const ExposedRegion& region, std::uint64_t offset,
                        const std::byte* operand, std::byte* result, std::uint64_t bytes, std::uint64_t& done);
  Served serve_operation(Rank from, const wire::Message& message, const Exposure& exposure,
                         std::span<std::byte> reply_room, Progress& progress);
  Served serve_epoch(Rank from, const wire::MessageHeader& header, const Exposure& exposure, ReplyToken token);
  // Leases (owner/leases.cpp).
  Served serve_lease(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
                     Progress& progress);
  Served serve_lease_put(Rank from, const wire::Message& message, const Exposure& exposure,
                         std::span<std::byte> reply_room, Progress& progress);
  Outcome put_back(Lease& lease, std::span<const std::byte> values, const Exposure& exposure, Progress& progress);
  Outcome put_back_run(Lease& lease, const Run& run, std::uint64_t first, const std::byte* values);
  Served serve_team(Rank from, const wire::Message& message);
  Served serve_life(std::span<std::byte> reply_room);
  bool is_held_back(Rank from, const wire::Message& message, std::span<const std::byte> bytes, std::size_t reply_bytes,
                    ReplyToken token, Served& held_back);
  Served park(const ProxyLocks::Key& key, std::span<const std::byte> bytes, std::size_t reply_bytes, ReplyToken token);
  void serve_parked(const ExposureTable::Reading& reading);
  bool finish_parked(const ExposureTable::Reading& reading, const ProxyLocks::Key& key, Parked& parked);
  void tell_granted(const ExposureTable::Reading& reading);
  void notify_listener();
  // Names a transfer to the transport.
  std::uint64_t begin_transfer(Progress& progress);
  Outcome wait_for_transfer(Transfer how, Progress& progress);
  void release_slot(Progress& progress);
  Code check_presence(const wire::Message& message, const Exposure& exposure) const;
  bool is_there(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes) const;
  Code check_extent(const wire::Message& message, const Exposure& exposure) const;
  static Code check_places(const wire::Message& message, const Exposure& exposure);
  static const ExposedRegion* region_of_all(const wire::Message& message, const Exposure& exposure);
  LockAgent lock_agent() const { return {options_.rank + 1, false, options_.liveness, nullptr, options_.permits}; }

  Options options_;
  ExposureTable& exposures_;
  Transport* transport_ = nullptr;
  std::vector<std::unique_ptr<PullSlot>> slots_;
  std::unordered_map<Rank, Progress> progress_;
  std::unordered_map<std::uint64_t, Progress*> transfers_;  // under way, by cookie
  std::uint64_t last_cookie_ = 0;
  ProxyLocks proxies_;
  LeaseTable leases_;
  std::map<ProxyLocks::Key, ParkedQueue> parked_;
  bool has_unfinished_ = false;  // among these, of locks that are held
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> offsets_;  // of the scatter being served
  std::uint64_t refused_ = 0;
};

}  // namespace farsum
