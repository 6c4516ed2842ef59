// The composition root: one rank of one job. It is given its place there (wireup.hpp), makes the parts, hands each what
// it needs of the others, and sees to the beginning and the end. Nothing here is global; the C interface keeps one
// Context, tests make several in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/teardown.hpp"
#include "liveness/peer_watch.hpp"
#include "liveness/remote_nodes.hpp"
#include "progress/attendance.hpp"
#include "progress/rank_bell.hpp"
#include "progress/thread_waiter.hpp"
#include "progress/wake_sources.hpp"
#include "promotion/promotion.hpp"
#include "protocol/exposure.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/owner/service.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/attached_memory.hpp"
#include "runtime/attending.hpp"
#include "runtime/card_side.hpp"
#include "runtime/carried_groups.hpp"
#include "runtime/groups.hpp"
#include "runtime/mutex_table.hpp"
#include "runtime/network_side.hpp"
#include "runtime/node_extents.hpp"
#include "runtime/node_memory.hpp"
#include "runtime/own_locks.hpp"
#include "runtime/own_node.hpp"
#include "runtime/path_models.hpp"
#include "runtime/rank_counts.hpp"
#include "runtime/team_exchange.hpp"
#include "runtime/team_maker.hpp"
#include "runtime/windows.hpp"
#include "runtime/wireup.hpp"
#include "transport/route/route_transport.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

class Context {
 public:
  struct Options {
    Settings settings;
    std::function<void()> idle;
    std::uint64_t idle_gap_ns = 1'000'000;
    bool many_threads = false;  // any of the program's threads may do what another rank waits for
    bool lacks_memory = false;  // the caller has found none: then the ranks of this node do not begin
  };

  static Result<std::unique_ptr<Context>> create(Membership membership, Options options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Collective: waits for the others, frees what still lives and leaves the node. pending on every rank while some rank
  // holds a lock or an epoch, unless some rank insists.
  enum class Insistence : std::uint8_t { none, forced };
  Status finalize(Insistence insistence = Insistence::none);

  std::uint32_t rank() const { return membership_.rank; }
  std::uint32_t size() const { return membership_.size; }
  const Settings& settings() const { return options_.settings; }
  const Membership& membership() const { return membership_; }
  // All ranks. Where ranks of other nodes are not reached, it has no meetings.
  Group& world() { return groups_->world(); }

  // How ranks of other nodes reach this one, and are reached. Any thread may call.
  NetworkSide& network() { return *network_; }
  bool reaches(Rank rank) const { return remote_nodes_->reaches(rank); }
  Attending& attending() { return *attending_; }

  Groups& groups() { return *groups_; }
  Windows& windows() { return *windows_; }
  MutexTable& mutexes() { return *mutexes_; }
  // By what groups and windows meet and reduce.
  const TeamMaker& teams() const { return *teams_; }
  RankStatistics statistics();
  const LetterDesk& letter_desk() const { return *desk_; }

  OriginEngine& engine() { return *engine_; }
  Hearing& hearing() { return hearing_; }
  ThreadWaiter& waiter() { return *waiter_; }
  // Called before the process locks its memory: see NodeSegment::leave_free_memory.
  void leave_free_memory(bool more_follows) {
    membership_.segment->leave_free_memory(node_.id_in_segment(), more_follows);
  }
  NodeSegment& segment() { return *membership_.segment; }
  // Hands out blocks of the segment to this rank's program. To be destroyed before the context.
  std::unique_ptr<NodeMemory> make_memory() { return std::make_unique<NodeMemory>(segment(), node_.id_in_segment()); }
  PeerWatch& watch() { return *watch_; }
  // The share of processors of those of the node's ranks that have the fewest; the same on all of them.
  const os::ProcessorShare& processors() const { return processors_; }
  // Why the kernel keeps this rank out of the memory of others of its node; empty where it does not.
  const std::string& copies_refused() const { return transport_->first_attach_refusal(); }
  // For single elements in lock-free stripes, by one thread of this process. See lockfree/lock_free_permit.hpp.
  LockFreePermit& own_permit() { return node_.block().permit; }

 private:
  Context(Membership membership, Options options);
  Status join();
  void make_parts();
  void make_ways();
  void make_service();
  void make_agent();
  void make_groups();
  void make_windows();
  Status meet_the_node();
  Status meet_the_job();
  Status serve_network(Network& network);
  void stop_serving();
  void leave();

  Membership membership_;
  OwnNode node_{membership_};
  Options options_;
  const ops::KernelSet* kernels_;
  std::uint64_t nonce_ = 0;
  os::ProcessorShare processors_;
  os::PromotionRegistry promotion_registry_;
  LockFreePermits permits_;
  RankCounts counts_;
  ExposureTable exposures_;
  Hearing hearing_;
  ReadCopies read_copies_;
  bool left_ = false;

  std::unique_ptr<RemoteNodes> remote_nodes_;
  std::unique_ptr<PeerWatch> watch_;
  std::unique_ptr<ThreadWaiter> waiter_;
  std::unique_ptr<ShmTransport> transport_;  // of this node
  std::unique_ptr<RouteTransport> route_;
  std::unique_ptr<NotificationListener> listener_;
  std::unique_ptr<TargetService> service_;
  std::unique_ptr<OriginEngine> engine_;
  std::unique_ptr<TeamExchange> exchange_;
  std::unique_ptr<LetterDesk> desk_;
  std::unique_ptr<NetworkSide> network_;
  Carries carries_;
  std::unique_ptr<RankBell> bell_;
  std::unique_ptr<Attendance> attendance_;
  std::unique_ptr<WakeSources> wake_sources_;
  std::unique_ptr<AgentChores> chores_;
  std::unique_ptr<CardSide> card_;
  std::unique_ptr<AgentSide> agent_;
  std::unique_ptr<Attending> attending_;

  std::unique_ptr<AttachedMemory> peer_memory_;
  std::unique_ptr<TeamMaker> teams_;
  std::unique_ptr<NodeExtents> extents_;
  std::unique_ptr<CarriedGroups> carried_;
  std::unique_ptr<Groups> groups_;

  std::unique_ptr<TeardownCircle> circle_;
  std::unique_ptr<Ringer> ringer_;
  std::unique_ptr<OwnLocks> locks_;
  std::unique_ptr<WindowPromotions> promotions_;
  std::unique_ptr<PathModels> models_;
  std::unique_ptr<RegionReach> reach_;
  std::unique_ptr<MemoryDescriptions> descriptions_;
  std::unique_ptr<Windows> windows_;
  std::unique_ptr<MutexTable> mutexes_;
};

}  // namespace farsum
