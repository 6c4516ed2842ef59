// A window as an origin sees it: what it knows of every target's memory, its epochs, and the decision for each
// operation: finish in the caller (hot view), or route to a path. Several threads may operate at once, and begin and
// end epochs at different targets; what an epoch call asks of the whole window it finds out under sync_mutex_.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "memory/apply.hpp"
#include "progress/waiter.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/window_shared.hpp"
#include "transport/rdma.hpp"
#include "variants/read_copies/read_ahead.hpp"
#include "window/copied_path.hpp"
#include "window/hot_window.hpp"
#include "window/mapped_path.hpp"
#include "window/offer_pace.hpp"
#include "window/operation_checks.hpp"
#include "window/paths.hpp"
#include "window/region_tables.hpp"
#include "window/route.hpp"
#include "window/team.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// How cards reach the parts of a window that is declared for them alone; null: it is not.
struct CardReach {
  Rdma* rdma = nullptr;
  std::vector<Rdma::Reached> parts;  // by rank of the group
};

// Operations carried out, per path, of one process.
struct PathCounters {
  std::atomic<std::uint64_t> operations[path_count] = {};
  std::atomic<std::uint64_t> bytes[path_count] = {};
};

enum class Completion : std::uint8_t { implicit, blocking, by_request };

class Window {
 public:
  // What a window is made of; runtime fills it in. Pointers outlive the window.
  struct Parts {
    WindowId id = 0;
    std::string name;
    std::vector<Rank> ranks;  // of the job, by rank of the group
    std::uint32_t my_rank = 0;
    std::uint32_t promises = 0;
    bool dynamic = false;
    std::uint64_t aggregate_limit = 1024;
    WindowSharedShape shape;
    std::vector<RankWindow> shared;  // by rank of the group; of ranks of this node
    // What is known of the memory of other nodes' ranks, by rank of the group; empty where there are none. In a dynamic
    // window it is all addresses: the owner says which are attached. In a window for network cards it has the parts of
    // all ranks.
    std::vector<RegionTable> remote_regions;
    CardReach cards;
    std::vector<std::uint64_t> sizes;  // of the parts; 0 in a dynamic window
    Settings settings;
    LockAgent lock_agent;  // of this process's threads
    const ops::KernelSet* kernels = nullptr;
    Team* team = nullptr;
    Waiter* waiter = nullptr;
    OriginEngine* engine = nullptr;
    Transport* transport = nullptr;
    PathCounters* counters = nullptr;
    Hearing* hearing = nullptr;
    ReadCopies* read_copies = nullptr;
    std::uint64_t read_age_ns = 0;  // 0: every read asks its target
    std::uint64_t (*now_ns)() = nullptr;
    // Where the views lie: as many as there are ranks, in their initial state. Null: the window keeps them itself.
    TargetView* views = nullptr;
    // Turns what a rank has published of its memory into what this process can do with it.
    std::function<Region(Rank owner, const SharedRegion&)> make_region;
    // Says why a region of that rank of the group is as it is. Null: nobody asks.
    std::function<std::string(std::uint32_t target, const Region&)> explain_region;
    // Maps what this process has not used yet of memory that the node shares; false where it cannot, or nobody has that
    // memory. Null: all is mapped.
    std::function<bool(const void* begin, std::uint64_t bytes)> reach;
    std::function<void(Rank)> wake_rank;  // wakes the waiting threads of a rank of this node
  };

  explicit Window(Parts parts);

  // What finishes in the caller; the values stay as they are while the window lives.
  HotWindow hot() const { return {views_, hot_parts_}; }

  // ---- operations: the long way ----

  Status operate(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request);
  // Accumulates one element, which nobody waits for, at a rank of another node: what operate() does with less to look
  // at. False: nothing was done, operate() does it or says what is wrong.
  bool update_remote(std::uint32_t target, std::uint64_t offset, const void* element, ops::ElementType type,
                     ops::Operator op);
  // What is done to one element: an accumulate, with `result` one that fetches, with `compare` a compare-and-swap.
  struct ElementUpdate {
    ops::ElementType type = ops::ElementType::byte;
    ops::Operator op = ops::Operator::replace;
    const std::byte* operand = nullptr;
    std::byte* result = nullptr;
    const std::byte* compare = nullptr;
  };
  // Whether that needs no more looking at, at a rank of this node whose memory the kernel copies. False: operate() does
  // it or says what is wrong.
  bool may_update_by_copy(std::uint32_t target, std::uint64_t offset, ops::ElementType type, ops::Operator op) const;
  // Does it where it may; it is complete on return.
  Status update_by_copy(std::uint32_t target, std::uint64_t offset, const ElementUpdate& element);
  // Accumulates single elements at `offset` plus each of `offsets`, where the part is mapped here. False: nothing was
  // done, take the long way; else `status` says how it went.
  bool scatter_hot(std::uint32_t target, std::uint64_t offset, std::span<const std::int64_t> offsets,
                   const void* elements, ops::ElementType type, ops::Operator op, Status& status);
  Status flush(std::uint32_t target, const char* call = "farsum_flush");
  Status flush_all(const char* call = "farsum_flush");
  // What the program asks for: the same inside an access epoch where it may flush. `local`: until its buffers are its
  // own again, though nothing may have come to the target yet.
  enum class Reach : std::uint8_t { local, target };
  Status flush_every_target(Reach reach = Reach::target);
  Status flush_one_target(std::uint32_t target, Reach reach = Reach::target);
  Status order();

  // ---- epochs ----

  Status fence(bool precede, bool succeed);
  Status post(std::span<const std::uint32_t> origins);
  // Where the program knows that all targets have posted, nobody looks whether they have; their posts are used up all
  // the same.
  enum class Posts : std::uint8_t { awaited, known };
  Status start(std::span<const std::uint32_t> targets, Posts posts = Posts::awaited);
  Status complete();
  Status wait_exposure();
  Status test_exposure(bool& done);
  Status lock(std::uint32_t target, LockMode mode);
  Status await_queued_lock(std::uint32_t target, LockMode mode, std::uint32_t slot);
  // An epoch as under a lock, which takes none: nobody waits for it, nor does it wait.
  Status lock_unchecked(std::uint32_t target);
  Status unlock(std::uint32_t target);
  Status lock_all();
  Status lock_all_unchecked();
  Status unlock_all();
  // Mutexes of a rank, beside the lock of its part: they begin no epoch. A rank that locks one twice waits for itself.
  Status lock_mutex(std::uint32_t target, std::uint32_t index);
  Status unlock_mutex(std::uint32_t target, std::uint32_t index);
  Status sync();

  Status notify_wait(std::uint32_t slot, std::uint64_t at_least);
  Status notify_value(std::uint32_t slot, std::uint64_t& value) const;

  // ---- what it is ----

  std::uint32_t size() const { return size_; }
  std::uint32_t my_rank() const { return parts_.my_rank; }
  const Parts& parts() const { return parts_; }
  std::uint64_t part_bytes(std::uint32_t rank) const { return parts_.sizes[rank]; }
  // Whether reads of other nodes' memory may be answered from copies.
  bool answers_reads() const { return read_ahead_ != nullptr; }
  // What this process has changed at that target; counted where reads of this or of other windows are answered from
  // copies. The caller counts what it finished itself.
  UnheardChanges& changes(std::uint32_t target) { return details_[target].changes; }
  // The regions of a rank's part as they are now.
  std::vector<Region> regions_of(std::uint32_t rank) { return regions_.explained(rank); }
  // Completes what is under way. Fails, and closes nothing, while a lock or an epoch of start or post is open, or where
  // an operation failed.
  Status settle(const char* call);
  // Ends the epoch of a fence and begins no other: the window is about to go.
  void close();
  // Ends everything that is open, as far as it goes.
  void abandon(const char* call);
  // Reads the regions that ranks have published and sets the hot views. Called once, before any operation, when all
  // have. Where there is no memory for it, and in a dynamic window, each operation that needs regions reads them.
  void refresh_views() noexcept;
  // What this process has done to a target so far; approximate while several threads are at it.
  struct Traffic {
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
  };
  Traffic traffic_to(std::uint32_t target) const;
  std::uint64_t hot_operations() const;
  std::uint64_t hot_bytes() const;

 private:
  void abandon_operations(const char* call) noexcept;
  void abandon_lock(std::uint32_t target, LockMode mode, const char* call) noexcept;
  // Updates gathered for one target on the aggregated path.
  struct Gathered {
    std::mutex mutex;
    ops::ElementType type = ops::ElementType::byte;
    ops::Operator op = ops::Operator::replace;
    std::byte alpha[wire::alpha_bytes] = {};
    std::vector<std::uint64_t> offsets;
    std::vector<std::byte> elements;

    void add(std::uint64_t offset, const std::byte* element, std::uint64_t bytes);
  };
  // An operation that its target's post has to come before, with all that it borrows but the origin's buffers: those
  // are the window's until the epoch ends.
  class DeferredUntilPost {
   public:
    explicit DeferredUntilPost(const Operation& operation);
    Operation operation() const;

   private:
    Operation operation_;
    ops::Layout operand_layout_, target_layout_, result_layout_;
    std::byte alpha_[wire::alpha_bytes] = {};
  };
  struct Detail {
    std::atomic<bool> awaits_post{false};  // an epoch of start includes the target, whose post has not been seen
    std::mutex deferred_mutex;             // while that is so, guards these and the target's posts_seen_
    std::vector<DeferredUntilPost> deferred;
    // The bytes of the part, where update_remote has nothing more to ask of its regions; else 0. Set with the hot
    // views.
    std::uint64_t remote_bytes = 0;
    // The region where may_update_by_copy has nothing more to ask of the part; else null. Set with the hot views.
    const Region* copied = nullptr;
    Gathered gathered;
    RequestState answer;                         // of the control message under way; see ask
    RequestState granted;                        // of the lock of a target of another node
    Outstanding asked;                           // counts both, and what is asked of mutexes
    std::atomic<bool> lock_is_unsure{false};     // nobody has looked for the answer since the lock was asked for
    std::atomic<std::uint64_t> bytes_behind{0};  // were sent meanwhile
    std::atomic<bool> ordered{false};            // farsum_order was called since the last flush
    UnheardChanges changes;
  };

  // `at` becomes the region where the target's bytes begin; none for an operation without bytes.
  Status check(const Operation& operation, std::uint32_t target, RegionRef& at);

  // Paths. window_paths.cpp chooses one; the operation is carried out by MappedPath, CopiedPath, in
  // window_messages.cpp, which also waits for messages, or in window_scatter.cpp. Copies that answer reads are in
  // window_reads.cpp, the tables of regions and the counts in window.cpp.
  Route route(const Operation& operation, std::uint32_t target, RegionRef at, Completion completion) const {
    return choose_route(operation, std::move(at),
                        {.is_here = is_here(target), .is_awaited = completion != Completion::implicit});
  }
  Status operate_now(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request);
  // The target is of another node, and its reads may be answered from copies.
  Status operate_with_copies(const Operation& operation, std::uint32_t target, RegionRef at, Completion completion,
                             RequestState* request);
  Status operate_unnoted(const Operation& operation, std::uint32_t target, Completion completion,
                         RequestState* request);
  bool may_answer_reads() const;
  void note_change(std::uint32_t target) {
    if (parts_.read_copies != nullptr && parts_.read_copies->are_used()) [[unlikely]]
      details_[target].changes.count();
  }
  std::size_t end_round_of_reads(std::uint32_t target);
  Status await_fetches(std::uint32_t target, const char* call);
  Status await_all_fetches(const char* call);
  Status carry_out(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
                   RequestState* request);
  Status run_owner(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request);
  Status run_aggregated(const Operation& operation, std::uint32_t target);
  Status scatter_under_locks(std::uint32_t target, std::uint64_t offset, std::span<const std::int64_t> offsets,
                             const std::byte* elements, const Reduction& reduction);
  bool gather_remote(std::uint32_t target, const Update& update);
  Status send_gathered(std::uint32_t target);
  void take_replies(Rank owner);
  Status wait_for_room(std::uint32_t target);
  Status wait_outstanding(std::uint32_t target, const char* call);
  Status wait_for_buffers(std::uint32_t target, const char* call);
  template <class Done>
  Status wait_for_replies(std::uint32_t target, Done&& done, const char* call);
  Status wait_for_answers(std::uint32_t target, FunctionRef<bool()> done, const char* call);
  Status take_failure(std::uint32_t target, const char* call);
  Status settle_before(const Operation& operation, std::uint32_t target, Path path);
  void count(Path path, std::uint64_t bytes);

  // Epochs. Those of fence and start, and the words that say which one is open, are in window_epochs.cpp, those of
  // locks in window_locks.cpp; what may be flushed in window_messages.cpp,
  // with_lock in window_lock_visit.hpp, and ask_of_mutex in window_remote.cpp.
  Status check_ranks(const char* call, std::span<const std::uint32_t> ranks) const;
  // Whether an epoch of start includes the target, whose post has not been seen.
  bool awaits_post(std::uint32_t target) const {
    // Acquire pairs with the release in begin_access: what was deferred has been carried out.
    return details_[target].awaits_post.load(std::memory_order_acquire);
  }
  bool has_posted(std::uint32_t target) const;
  bool defer_until_post(const Operation& operation, std::uint32_t target, Status& status);
  Status await_post(std::uint32_t target, const char* call);
  void give_up_post(std::uint32_t target);
  void begin_access(std::uint32_t target);
  bool in_access_epoch(std::uint32_t target) const {
    // Relaxed: see HotWindow::find.
    return views_[target].open.load(std::memory_order_relaxed) > no_epoch || awaits_post(target);
  }
  // These with sync_mutex_ held. Why an epoch cannot begin, null where it can: sentences are made of it only then.
  const char* leave_fence();
  const char* why_fence_stays() const;
  const char* why_no_fence() const;
  bool set_fence(bool open);
  const char* why_no_start();
  const char* why_not_lockable(std::uint32_t target) const;
  const char* why_not_all_lockable() const;
  Status check_lockable(std::uint32_t target);
  Status check_all_lockable();
  const char* why_no_lock(std::uint32_t target);
  const char* make_way_for_all();
  const char* why_no_lock_all();
  void settle_lockable();
  std::uint32_t locks_held() const;
  Status check_closed_epochs(const char* call) const;
  std::int32_t least_open_to_flush() const;
  Status outside_flushable_epoch(const std::string& what) const;
  void note_issued() {
    // Relaxed: epoch calls come before or after it in the program's order. Written once an epoch.
    if (!issued_.load(std::memory_order_relaxed)) issued_.store(true, std::memory_order_relaxed);
  }
  bool open_epoch(std::uint32_t target, AccessEpoch epoch);
  // Changes the word to epoch_changing, under the guard of the target's lock; false where it is not `from`.
  bool claim(std::uint32_t target, std::int32_t from);
  // Visits that guard to change the word from no_epoch; false where an epoch includes the target.
  bool claim_under_guard(std::uint32_t target);
  void close_epoch(std::uint32_t target);
  Contender contender() const { return {parts_.lock_agent.id, parts_.lock_agent.place}; }
  Status await_lock(std::uint32_t target, LockMode mode, const char* call, std::uint32_t index = 0);
  Status await_requested(std::uint32_t target, const Requested& requested, const char* call, std::uint32_t index);
  void open_lock(std::uint32_t target, LockMode mode);
  Status drop_lock(std::uint32_t target, LockMode mode, const char* call);
  Status not_held_in_memory(const char* call, std::uint32_t target) const;
  template <class F>
  auto with_lock(std::uint32_t target, F&& f, std::uint32_t index = 0) const;
  Status ask_of_mutex(std::uint32_t target, wire::MessageKind kind, std::uint32_t lock, const char* call);
  Status refuse_lock(std::uint32_t target, const char* why) const;
  Status not_held(std::uint32_t target) const;
  Status lock_here(std::uint32_t target, LockMode mode);
  Status unlock_here(std::uint32_t target, std::int32_t open);
  Status unlock_unchecked(std::uint32_t target);
  Status unlock_all_unchecked();
  // An epoch without a lock may begin at the target: the word is the caller's.
  bool claim_for_epoch(std::uint32_t target);
  const char* lock_what_is_free(std::uint32_t& taken);
  // Locks of all by bias (window_bias.cpp).
  bool hold_all_by_bias();
  Status unlock_all_by_bias(const char* call);
  void drop_bias();
  void leave_all_locks();
  bool claim_all_words();
  void close_words_of_all(std::uint32_t end);
  void offer_bias_at_times();
  void offer_bias();
  // Locks of all, taken one by one (window_locks.cpp).
  std::uint32_t after_mine(std::uint32_t i) const;
  std::optional<bool> claim_and_try(std::uint32_t target);
  Status lock_the_rest(std::uint32_t taken, const char* call);
  bool holds_with_all(std::uint32_t target) const;
  Status lock_free_targets(std::uint32_t& taken, const char* call);
  Status ask_at_once(std::uint32_t target, const char* call);
  Status wait_for_target(std::uint32_t target, const char* call);
  void give_back_target(std::uint32_t target, const char* call);
  void give_back_targets(std::uint32_t first, const char* call);
  // The end of start's epoch (window_epochs.cpp).
  void await_started_posts(std::unique_lock<std::mutex>& lock, Status& failure);
  Status end_access();

  // Targets of other nodes (window_remote.cpp). What is plain of a part is found in window.cpp, with the hot views.
  bool is_here(std::uint32_t target) const { return parts_.shared[target].is_here(); }
  bool is_plain_remote(const Region& region, Path path) const;
  bool is_plainly_copied(const Region& region) const;
  // Changes the word to epoch_changing where no guard orders threads, or no other thread goes by the guard while it is
  // `from`; false where it is not.
  bool claim_by_swap(std::uint32_t target, std::int32_t from);
  Status lock_remote(std::uint32_t target, LockMode mode);
  Status unlock_remote(std::uint32_t target, std::int32_t open);
  // Caller-computes there (window_leases.cpp).
  Status run_leased(const Operation& operation, std::uint32_t target);
  // Sends a control message. Without a request its failure is told by the next flush, which also waits for it.
  Status tell(std::uint32_t target, wire::MessageKind kind, std::uint8_t flags, RequestState* request,
              Outstanding& outstanding, std::uint32_t slot = 0);
  // Sends one whose answer await_answer waits for: one at a time to a target, by who owns its epoch.
  Status ask(std::uint32_t target, wire::MessageKind kind, LockMode mode, RequestState& answer,
             std::uint8_t more_flags = 0);
  Status await_answer(std::uint32_t target, const RequestState& answer, const char* call);
  // Before this thread takes a lock: waits for those that it has asked other nodes for, where there are any.
  bool has_asked_locks() const { return parts_.lock_agent.asked != nullptr && parts_.lock_agent.asked->any(); }
  Status await_asked_locks(const char* call);
  // Waits until the lock of the epoch is held, where nobody knows yet.
  Status learn_of_lock(std::uint32_t target, const char* call);
  // Sends an operation while that is so, as far as there may be more behind the lock: else learns of it first, and
  // leaves the sending to the caller.
  Status send_behind_lock(const Operation& operation, std::uint32_t target, RequestState* request, bool& sent);
  // Sends what ends the epoch at the target, right behind the operations. With await_end it has ended, whatever became
  // of them.
  Status ask_to_end(std::uint32_t target, wire::MessageKind kind, LockMode mode);
  Status await_end(std::uint32_t target, const char* call);

  // Network cards, where the window is declared for them alone (window_offload.cpp).
  struct CardTarget {
    CardCompletion posted;           // of what nobody waits for by itself
    std::atomic<bool> dirty{false};  // something was started since the last flush; then `outstanding` counts one more
    std::atomic<std::uint8_t> last_update{0};  // see order_card
  };
  struct CardCall;
  // Without a region it is a notification alone.
  Status run_offload(const Operation& operation, std::uint32_t target, const Region* region, Completion completion,
                     RequestState* request);
  Status check_for_card(const Operation& operation, std::uint32_t target, const Region& region) const;
  Status order_card(std::uint32_t target, const Operation& operation);
  Status notify_behind_card(const Operation& operation, std::uint32_t target);
  Status card_status(Status status, std::uint32_t target, const char* call) const;
  void note_card(std::uint32_t target);
  Status await_card(std::uint32_t target, CardCompletion& completion, const char* call);
  // Waits until all that cards were asked for has taken effect; what failed is told by the next take_failure.
  void settle_card(std::uint32_t target, const char* call);
  void settle_cards(const char* call);
  bool begin_settling(std::uint32_t target);
  void end_settling(std::uint32_t target, const char* call);
  void note_failure(std::uint32_t target, const Status& status);

  Parts parts_;
  RegionTables regions_;
  WindowTexts texts_;
  OperationChecks checks_;
  MappedPath mapped_;
  CopiedPath copied_;
  std::uint32_t size_;
  HotParts hot_parts_;
  std::unique_ptr<TargetView[]> own_views_;
  TargetView* views_;
  std::unique_ptr<Detail[]> details_;
  std::unique_ptr<CardTarget[]> card_targets_;  // null: not for cards
  std::vector<std::uint32_t> remote_targets_;   // those of other nodes
  std::unique_ptr<ReadAhead> read_ahead_;       // null: every read asks its target

  std::mutex sync_mutex_;
  bool fence_open_ = false;
  std::uint64_t hot_at_fence_ = 0;   // hot operations when the last fence ended
  std::atomic<bool> issued_{false};  // others since
  bool closed_ = false;
  bool all_locked_ = false;
  std::uint64_t bias_epoch_ = 0;  // by which all are locked; 0: they are locked one by one, or not at all
  OfferPace offer_pace_;
  bool started_ = false;
  std::vector<std::uint32_t> started_targets_;
  std::vector<std::uint32_t> posts_seen_;  // posts of each rank that a start has used up
  bool exposed_ = false;
  std::uint64_t completes_expected_ = 0;
};

}  // namespace farsum
