// The objects of the protocol as ranks of a simulated job: each has its OriginEngine and its TargetService, and
// awaitable operations over them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ops/kernels.hpp"
#include "protocol/exposure.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/owner/service.hpp"
#include "transport/sim/history.hpp"
#include "transport/sim/script.hpp"
#include "transport/sim/sim_world.hpp"
#include "transport/trace/trace_transport.hpp"
#include "variants/leases/lease_service.hpp"
#include "variants/leases/leased_update.hpp"

namespace farsum {

struct ProtocolJobOptions {
  SimOptions sim;
  Rank owners = 1;                  // ranks 0 to owners - 1 expose memory
  std::size_t window_bytes = 4096;  // each
  std::uint64_t inline_bytes = 8192;
  bool pull = true;
  std::size_t backlog = 64;
  std::uint64_t pull_bytes = 65536;
  std::size_t pull_slots = 4;
  std::uint32_t notification_slots = 4;
  bool refuses_locks = false;
  TeamMail* team_mail = nullptr;
  std::uint32_t known_dead = 0;
  LeaseTable::Options leases;
  bool atomics_only = false;  // the memory is that of CPU atomics alone
  bool for_cards = false;     // that of network cards alone
};

// What a seed makes of the machine and of the settings: room, delays, slow peers, who pulls. Tests set the rest.
ProtocolJobOptions options_from(std::uint64_t seed);

class ProtocolRank : private RequestHandler {
 public:
  ProtocolRank(SimWorld& world, Rank rank, const ProtocolJobOptions& options, NotificationListener* listener);

  Rank rank() const { return program.rank(); }
  SimTime now_ns() { return program.world().now_ns(); }
  SimRandom& random() { return random_; }

  // Each waits for its operation's end at the target.
  SimTask<Code> run(Rank owner, Operation operation);
  // The same by caller-computes; `left_to_owner` becomes what was not.
  SimTask<Code> run_leased(Rank owner, Operation operation, std::uint64_t* left_to_owner = nullptr);
  SimTask<Code> accumulate(Rank owner, std::uint64_t offset, ops::ElementType type, ops::Operator op,
                           const void* operand, std::uint64_t bytes);
  // Of one 64-bit element: the value before.
  SimTask<std::uint64_t> fetch(Rank owner, std::uint64_t offset, ops::Operator op, std::uint64_t operand);
  SimTask<std::uint64_t> compare_and_swap(Rank owner, std::uint64_t offset, std::uint64_t compare,
                                          std::uint64_t operand);
  SimTask<Code> lock(Rank owner, bool is_exclusive);
  SimTask<Code> unlock(Rank owner, bool is_exclusive);
  // Any control message; `header` needs no sequence.
  SimTask<Code> control(Rank owner, wire::MessageHeader header, std::span<const std::byte> body = {},
                        std::span<std::byte> reply = {});
  // A header of that kind as this rank would send it.
  wire::MessageHeader header_of(wire::MessageKind kind) const;
  // Starts it, waiting for room only; `outstanding` counts it.
  SimTask<> start(Rank owner, Operation operation, Outstanding& outstanding);
  SimTask<> start_scatter(Rank owner, ops::ElementType type, ops::Operator op, std::span<const std::uint64_t> offsets,
                          std::span<const std::byte> elements, Outstanding& outstanding);
  SimTask<> flush(Outstanding& outstanding);

  static constexpr WindowId window = 1;

  // Told of each message that comes, before it is served; may be empty.
  std::function<void(std::span<const std::byte>)> on_message;

  SimRank program;
  ExposureTable exposures;
  LeaseService* leases = nullptr;  // of the service
  TargetService service;
  TraceTransport trace;  // counts what this rank asks of others
  OriginEngine engine;

 private:
  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override;
  // As the agent does where something is left to do.
  void come_back();
  void visit_coalesced();
  SimTask<Code> lock_message(Rank owner, wire::MessageKind kind, bool is_exclusive);

  SimRandom random_;
};

// Told by a rank's agent.
class CountingListener final : public NotificationListener {
 public:
  void on_notified() override { ++count; }
  std::uint64_t count = 0;
};

class ProtocolJob {
 public:
  ProtocolJob(std::uint64_t seed, Rank ranks, const ProtocolJobOptions& options);

  SimWorld& world() { return world_; }
  ProtocolRank& rank(Rank rank) { return *ranks_[rank]; }
  Rank rank_count() const { return static_cast<Rank>(ranks_.size()); }
  // The window memory of an owner, and its stripe locks.
  std::span<std::byte> memory(Rank owner) { return memory_[owner]; }
  AtomicDomain domain(Rank owner) const { return domains_[owner]; }
  std::uint64_t notifications(Rank owner, std::uint32_t slot) const {
    return rank_windows_[owner].notifications()[slot].load();
  }
  std::uint64_t word(Rank owner, std::uint64_t offset) const;
  // What ranks of the owner's node see of its window.
  const RankWindow& rank_window(Rank owner) const { return rank_windows_[owner]; }
  const WindowSharedShape& shape() const { return shape_; }
  // The owner's lock as a rank of its node takes and gives it.
  // Index 0: the window's own; behind it those of mutexes.
  SharedLock<HolderDead> lock_view(Rank owner, std::uint32_t index = 0) const {
    return rank_windows_[owner].lock_view(nullptr, index);
  }
  std::uint64_t times_notified(Rank owner) const { return listeners_[owner]->count; }

  // Runs until nothing more happens; whether that came about, and all living ranks' programs have come to their end.
  bool run();

  History history;

 private:
  void expose(Rank owner, const ProtocolJobOptions& options);

  SimWorld world_;
  std::vector<std::span<std::byte>> memory_;
  std::vector<AtomicDomain> domains_;
  WindowSharedShape shape_;
  std::vector<RankWindow> rank_windows_;
  std::vector<std::unique_ptr<CountingListener>> listeners_;
  std::vector<std::unique_ptr<ProtocolRank>> ranks_;
};

}  // namespace farsum
