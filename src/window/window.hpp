// A window as an origin sees it: a facade over the parts that know its targets' memory, its epochs and its paths. It
// takes an operation through check, route and execution; what can be finished in the caller is the hot view's
// (hot_window.hpp). Several threads may operate at once, and begin and end epochs at different targets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "window/all_locks.hpp"
#include "window/answered_reads.hpp"
#include "window/biased_locks.hpp"
#include "window/completions.hpp"
#include "window/copied_path.hpp"
#include "window/epoch_rules.hpp"
#include "window/epoch_words.hpp"
#include "window/executor.hpp"
#include "window/gathered_updates.hpp"
#include "window/hot_window.hpp"
#include "window/local_locks.hpp"
#include "window/mapped_path.hpp"
#include "window/mapped_scatter.hpp"
#include "window/notifications.hpp"
#include "window/operation_checks.hpp"
#include "window/owner_messages.hpp"
#include "window/owner_path.hpp"
#include "window/post_epochs.hpp"
#include "window/region_tables.hpp"
#include "window/remote_locks.hpp"
#include "window/route.hpp"
#include "window/target_locks.hpp"
#include "window/target_state.hpp"
#include "window/traffic.hpp"
#include "window/window_parts.hpp"
#include "window/window_texts.hpp"

namespace farsum {

class Window {
 public:
  using Parts = WindowParts;
  explicit Window(Parts parts);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

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
  // As of MappedScatter::run.
  bool scatter_hot(std::uint32_t target, const MappedScatter::List& list, Status& status) {
    return target < size_ && scatter_.run(views_[target], target, list, status);
  }

  // ---- completion ----

  // Where the program may flush: inside an access epoch. `local`: until its buffers are its own again, though nothing
  // may have come to the target yet.
  enum class Reach : std::uint8_t { local, target };
  Status flush_every_target(Reach reach = Reach::target);
  Status flush_one_target(std::uint32_t target, Reach reach = Reach::target);
  // Later operations at a target take effect behind earlier ones, until the next flush.
  void order() { order_.mark_all(); }

  // ---- epochs and notifications ----

  Status fence(bool precede, bool succeed);
  TargetLocks& locks() { return locks_; }
  AllLocks& all_locks() { return all_locks_; }
  PostEpochs& posts() { return posts_; }
  Notifications& notifications() { return notifications_; }

  // ---- its end ----

  // Completes what is under way. Fails, and closes nothing, while a lock or an epoch of start or post is open, or where
  // an operation failed.
  Status settle(const char* call);
  // Ends the epoch of a fence and begins no other: the window is about to go.
  void close();
  // Ends everything that is open, as far as it goes.
  void abandon(const char* call);

  // ---- what it is ----

  std::uint32_t size() const { return size_; }
  std::uint32_t my_rank() const { return parts_.my_rank; }
  const Parts& parts() const { return parts_; }
  std::uint64_t part_bytes(std::uint32_t rank) const { return parts_.sizes[rank]; }
  // Whether reads of other nodes' memory may be answered from copies.
  bool answers_reads() const { return reads_ != nullptr; }
  // What this process has changed at that target; counted where reads of this or of other windows are answered from
  // copies. The caller counts what it finished itself.
  UnheardChanges& changes(std::uint32_t target) { return states_[target].changes; }
  // The regions of a rank's part as they are now.
  std::vector<Region> regions_of(std::uint32_t rank) { return regions_.explained(rank); }
  // Reads the regions that ranks have published and sets the hot views. Called once, before any operation, when all
  // have. Where there is no memory for it, and in a dynamic window, each operation that needs regions reads them.
  void refresh_views() noexcept;
  Traffic traffic_to(std::uint32_t target) const { return traffic(views_[target]); }
  Traffic hot_traffic() const { return farsum::hot_traffic(std::span(views_, size_)); }

 private:
  bool is_here(std::uint32_t target) const { return parts_.shared[target].is_here(); }
  std::unique_ptr<AnsweredReads> make_reads();
  std::unique_ptr<Executor> make_executor(const MakeExecutor& make);

  // `at` becomes the region where the target's bytes begin; none for an operation without bytes.
  Status check(const Operation& operation, std::uint32_t target, RegionRef& at);
  Status explain(const Operation& operation, std::uint32_t target, Status refused) const;
  // What operate() does where the target has posted.
  Status execute(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request);
  // The target is of another node, and its reads may be answered from copies.
  Status run_with_copies(const Operation& operation, std::uint32_t target, RegionRef at, Completion completion,
                         RequestState* request);
  Status run(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
             RequestState* request);
  Route route(const Operation& operation, std::uint32_t target, RegionRef at, Completion completion) const {
    return choose_route(operation, std::move(at),
                        {.is_here = is_here(target), .is_awaited = completion != Completion::implicit});
  }
  void count(const Operation& operation, std::uint32_t target, Path path);
  void note_change(std::uint32_t target) {
    if (parts_.read_copies != nullptr && parts_.read_copies->are_used()) [[unlikely]]
      states_[target].changes.count();
  }
  Status outside_flushable_epoch(const std::string& what) const;

  Parts parts_;
  std::uint32_t size_;
  std::vector<std::uint32_t> remote_targets_;  // those of other nodes
  HotParts hot_parts_;
  std::unique_ptr<TargetView[]> own_views_;
  TargetView* views_;
  std::unique_ptr<TargetState[]> states_;  // by target

  RegionTables regions_;
  WindowTexts texts_;
  OperationChecks checks_;
  EpochWords words_;
  EpochRules rules_;
  OrderMarks order_;
  OwnerMessages messages_;
  RemoteLocks remote_locks_;
  Notifications notifications_;

  MappedPath mapped_;
  MappedScatter scatter_;
  CopiedPath copied_;
  OwnerPath owner_;
  std::optional<GatheredUpdates> gathered_;  // none: the window has not this path
  std::unique_ptr<AnsweredReads> reads_;     // null: every read asks its target
  std::unique_ptr<Executor> cards_;          // null: not for cards
  std::unique_ptr<Executor> leases_;         // null: no target is of another node

  Completions completions_;
  LocalLocks local_locks_;
  TargetLocks locks_;
  BiasedLocks biased_;
  AllLocks all_locks_;
  PostEpochs posts_;
};

}  // namespace farsum
