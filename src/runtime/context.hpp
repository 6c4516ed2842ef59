// The composition root: one rank of one job. It is given its place there (wireup.hpp), builds transport, agent and
// engine, and owns groups, windows and what is made of them. Nothing here is global; the C interface keeps one Context,
// tests make several in one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collectives/group_team.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/reductions.hpp"
#include "collectives/teardown.hpp"
#include "cost/tree_rule.hpp"
#include "liveness/network_card.hpp"
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
#include "runtime/card_side.hpp"
#include "runtime/group.hpp"
#include "runtime/group_rounds.hpp"
#include "runtime/link_models.hpp"
#include "runtime/network_side.hpp"
#include "runtime/node_memory.hpp"
#include "runtime/own_node.hpp"
#include "runtime/promotion_balance.hpp"
#include "runtime/rank_counts.hpp"
#include "runtime/team_exchange.hpp"
#include "runtime/window_object.hpp"
#include "runtime/wireup.hpp"
#include "transport/route/route_transport.hpp"
#include "transport/shm/shm_transport.hpp"
#include "window/window.hpp"

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
  // All ranks. Where ranks of other nodes are not reached, it has no meetings.
  Group& world() { return *world_; }

  // How ranks of other nodes reach this one. Starts the network; a card that says why there is none is exchanged like
  // any other. Any thread may call.
  Result<NetworkCard> network_card();
  // Ranks of other nodes are reached from here on, if all the cards say so: else unsupported, with the rank, its host
  // and why. Cards of ranks that are reached already do no harm.
  Status introduce(std::span<const NetworkCard> cards);
  bool reaches(Rank rank) const { return remote_nodes_->reaches(rank); }
  // See Attendance; refused, too, where the agent never sleeps. Any thread may call.
  Status begin_attending();
  bool attend();
  void end_attending();
  const Membership& membership() const { return membership_; }

  // `lacks_memory`: the caller has found none; then no rank gets the group.
  Result<Group*> create_group(Group& parent, std::span<const std::uint32_t> members, bool lacks_memory = false);
  Status free_group(Group* group);
  // By a thread that makes a call of the group.
  Result<Carry*> carry_of(Group& group);

  Result<WindowObject*> allocate_window(Group& group, std::uint64_t bytes, const WindowOptions& options);
  Result<WindowObject*> adopt_window(Group& group, void* memory, std::uint64_t bytes, const WindowOptions& options);
  Result<WindowObject*> create_dynamic_window(Group& group, const WindowOptions& options);
  Status attach(WindowObject& object, void* memory, std::uint64_t bytes);
  Status detach(WindowObject& object, const void* memory);
  // The ranks agree that the window goes; then free_window is local.
  Status prepare_free(WindowObject& object, const char* call = "farsum_window_prepare_free");
  Status free_window(WindowObject* object);

  // `count` at this rank.
  Result<Mutexes*> create_mutexes(Group& group, std::uint32_t count, bool lacks_memory = false);
  Status free_mutexes(Mutexes* mutexes);

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
  // By what nodes take the trees of their reductions, which rank 0 decides for the whole job.
  const cost::TreeRule& tree_rule() const { return tree_rule_; }
  // Of the tree in which so many nodes reduce; 0: by their number.
  std::uint32_t reduce_degree(std::uint32_t nodes) const;
  // For single elements in lock-free stripes, by one thread of this process. See lockfree/lock_free_permit.hpp.
  LockFreePermit& own_permit() { return node_.block().permit; }

 private:
  class TableGuard;
  class Making;
  struct Creation;  // a rank's wish for a window (window_creation.hpp)
  struct Listed;    // the ranks of a group that is being made (group_creation.cpp)
  struct NodesOfList;

  Context(Membership membership, Options options);
  Status join();
  void make_parts();
  Status meet_the_node();
  void share_processors(std::span<os::ProcessorBounds> bounds);
  std::unique_ptr<Group> group_of_the_node();
  Status meet_the_job();
  Status begin_world();
  void go_on_carrying();
  Status serve_network(Network& network);
  Status serve_card(Rdma& card);
  Group::Means make_means(GroupPlaces places, std::uint32_t my_rank) const;
  std::unique_ptr<LetterPost> make_post(const GroupPlaces& places, std::uint32_t my_rank, LetterPost::Use use) const;
  Status check_listed(Listed& listed) const;
  std::optional<std::uint64_t> next_round(const Listed& listed);
  Status found_group(const Listed& listed, std::uint64_t round, const Group::Means& means, HeapExtent& block);
  Status reach_team(HeapExtent block, std::uint32_t my_place_here);
  Status agree_on_memory(const Listed& listed, NodeTeam& node, std::uint64_t key, const GroupTeam* team,
                         std::uint32_t& lacking);
  void tell_of_failure(const Listed& listed, std::uint64_t key, const GroupTeam* team);
  Status agree_between_nodes(const Listed& listed, std::uint64_t key, const GroupTeam* team, std::uint32_t& lacking);
  NodesOfList count_nodes(const Listed& listed, const GroupTeam* team) const;
  Rank first_of_node(const Listed& listed, const GroupTeam* team, const NodesOfList& nodes, std::uint32_t node) const;
  bool is_first_of_node(const Listed& listed, std::uint32_t member) const;
  LockAgent lock_agent() {
    return {.id = membership_.rank + 1,
            .liveness = watch_.get(),
            .contention = &counts_.stripe_contention(),
            .permits = &permits_,
            .ringer = ringer_.get(),
            .asked = &asked_locks_,
            .queues_as = waiter_->would_look() ? lock_word::waiting : lock_word::asleep_for_good};
  }
  void give_back(HeapExtent extent);
  void leave(HeapExtent extent);
  bool reach(const void* begin, std::uint64_t bytes) const;
  Region make_region(Rank owner, const SharedRegion& shared) const;
  Reach reach_here(Rank owner, const Region& region) const;
  static Reach remote_reach(const Region& region);
  std::string explain_region_here(Rank owner, const Region& region) const;
  std::string explain_remote_region(Rank owner, const Region& region) const;
  // Read when a window first asks for ranks on machines of that kind.
  const PathModel& path_model(std::uint32_t machine) const;
  const PathModel* known_path_model(std::uint32_t machine) const;
  void keep_place_for_window();
  void give_place_for_window_back();
  void forget(Group* group);
  void leave_carried(Group& group);
  Result<WindowObject*> make_window(Group& group, Creation& wish, const WindowOptions& options);
  void describe_adopted(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                        std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed);
  void describe_parts(const Creation& wish, const std::string& note, std::vector<SharedRegion>& shared,
                      std::vector<ExposedRegion>& exposed);
  Status look_at_memory(Creation& wish, const char* call) const;
  void describe_stretch(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                        bool atomics_only, std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed);
  std::string why_not_promoted(const Creation& wish, const WindowOptions& options, const GroupPlaces& places) const;
  // Where memory may not move it is promoted if another window's promotion has it already.
  enum class Moves : std::uint8_t { allowed, too_dear };
  bool promote(const Creation& wish, Moves moves, WindowObject& object, std::vector<SharedRegion>& shared,
               std::vector<ExposedRegion>& exposed, std::string& refusal);
  bool move_into_segment(const Creation& wish, WindowObject& object, MoveCost& cost, std::string& refusal);
  Moves ask_balance();
  void tell_traffic(WindowObject& object);
  void settle_balance(WindowObject& object);
  Status make_room_for_regions(WindowObject& object, std::uint64_t count);
  void publish(WindowObject& object, const std::vector<SharedRegion>& shared,
               const std::vector<ExposedRegion>& exposed);
  void withdraw(WindowObject& object, std::uint64_t begin, std::uint64_t end);
  void demote(WindowObject& object);
  void demote_in_quiet(WindowObject& object, const char* call);
  void demote_all();
  Status agree_to_part(WindowObject& object, Code mine, const char* call, Teardown::Answer& answer);
  void depart(WindowObject& object);
  void sweep_circles();
  void note_thread();
  Status find_open();
  Status find_open_requests();
  void abandon_all();
  void settle_promotions();
  void retry_some_kept();
  void retry_kept(const os::PromotionRules& rules);
  void leave();
  AtomicDomain own_domain(const void* memory) const;
  os::PromotionRules promotion_rules() const;

  Membership membership_;
  OwnNode node_{membership_};
  Options options_;
  const ops::KernelSet* kernels_;
  std::uint64_t nonce_ = 0;
  os::ProcessorShare processors_;
  cost::TreeRule tree_rule_;
  std::atomic<std::uint32_t> windows_numbered_{0};  // of those over several nodes that this rank has named
  std::unique_ptr<RemoteNodes> remote_nodes_;
  std::unique_ptr<PeerWatch> watch_;
  std::unique_ptr<ThreadWaiter> waiter_;
  std::unique_ptr<ShmTransport> transport_;  // of this node
  std::unique_ptr<AttachedMemory> peer_memory_;
  std::unique_ptr<RouteTransport> route_;
  ExposureTable exposures_;
  std::unique_ptr<NotificationListener> listener_;
  std::unique_ptr<TargetService> service_;
  Hearing hearing_;
  ReadCopies read_copies_;
  mutable AskedLocks asked_locks_;
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
  std::unique_ptr<Ringer> ringer_;
  // Nobody asks anything of a rank without windows, so the first window starts it, where the network has not.
  std::unique_ptr<AgentSide> agent_;
  os::PromotionRegistry promotions_;
  std::mutex balance_mutex_;
  PromotionBalance balance_;                    // guarded by it
  std::vector<os::Promotion> kept_promotions_;  // of windows that are gone, over memory that others still expose
  std::size_t promotions_of_windows_ = 0;       // guarded as kept_promotions_, by a pause of the exposures
  // Frees until what could not be turned back is tried again, and how many that were last.
  std::uint32_t frees_until_retry_ = 1;
  std::uint32_t frees_between_retries_ = 1;
  RankCounts counts_;
  LockFreePermits permits_;
  mutable std::mutex path_models_mutex_;
  mutable std::map<std::uint32_t, PathModel> path_models_;  // by the machine's number
  bool left_ = false;
  std::unique_ptr<TeardownCircle> circle_;

  std::mutex mutex_;             // guards what follows
  std::unique_ptr<Group> home_;  // the ranks of this node
  std::unique_ptr<Group> world_;
  std::vector<std::unique_ptr<Group>> groups_;
  GroupRounds group_rounds_;
  std::vector<std::unique_ptr<WindowObject>> windows_;
  std::size_t windows_being_made_ = 0;
  std::vector<std::unique_ptr<WindowObject>> left_circles_;  // freed here, while others have yet to come
  std::thread::id window_thread_;                            // that made the first window
  Traffic retired_hot_traffic_;                              // of windows that are gone
};

}  // namespace farsum
