// Epochs of post, start, complete and wait. On one node they meet in shared memory, else in that of the target's agent;
// nobody needs the target's program. A start does not wait for the posts: operations for a target that has not posted
// are kept until it has, and carried out by the window when the post is seen. The order of memory: closing
// an access epoch flushes, and flush ends with a full fence, before anything here tells the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "ops/layout.hpp"
#include "progress/waiter.hpp"
#include "protocol/messages.hpp"
#include "protocol/operation.hpp"
#include "protocol/origin/hearing.hpp"
#include "protocol/window_shared.hpp"
#include "window/completions.hpp"
#include "window/epoch_rules.hpp"
#include "window/epoch_words.hpp"
#include "window/operation_checks.hpp"
#include "window/target_state.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call.
class PostEpochs {
 public:
  // All outlive it.
  struct Needs {
    WindowId window = 0;
    std::uint32_t my_rank = 0;
    bool defers = true;                          // false in a dynamic window, whose targets attach before they post
    std::span<const Rank> ranks;                 // of the job, by rank of the group
    std::span<const RankWindow> shared;          // of ranks of this node
    const std::function<void(Rank)>& wake_rank;  // wakes the waiting threads of a rank of this node
    const OperationChecks& checks;
    const WindowTexts& texts;
    EpochWords& words;
    EpochRules& rules;
    TargetState* states;  // of which it writes awaits_post
    OwnerMessages& messages;
    Completions& completions;
    Waiter& waiter;
    Hearing* hearing = nullptr;  // may be null
    // Says what is wrong with an operation, and carries out one that was kept: both are the window's.
    std::function<Status(const Operation&, std::uint32_t target, RegionRef& at)> check;
    std::function<Status(const Operation&, std::uint32_t target)> carry_out;
  };
  explicit PostEpochs(Needs needs);

  Status post(std::span<const std::uint32_t> origins);
  // Where the program knows that all targets have posted, nobody looks whether they have; their posts are used up all
  // the same.
  enum class Posts : std::uint8_t { awaited, known };
  Status start(std::span<const std::uint32_t> targets, Posts posts = Posts::awaited);
  Status complete();
  Status wait();
  Status test(bool& done);

  // Whether an epoch of start includes the target, whose post has not been seen.
  bool awaits_post(std::uint32_t target) const {
    // Acquire pairs with the release in begin_access: what was deferred has been carried out.
    return needs_.states[target].awaits_post.load(std::memory_order_acquire);
  }
  // Keeps an operation until the post, or says why it cannot be; nothing where it cannot be kept, or need not be any
  // more.
  using Kept = std::optional<Status>;
  Kept keep(const Operation& operation, std::uint32_t target);
  // Waits for the post, and has what was deferred for it carried out: in its order and before anything that comes
  // later. What was deferred and fails is told here.
  Status await_post(std::uint32_t target, const char* call);
  // Ends an access epoch as far as that goes, whatever fails.
  void abandon(const char* call);

 private:
  // An operation that its target's post has to come before, with all that it borrows but the origin's buffers: those
  // are the window's until the epoch ends.
  class Deferred {
   public:
    explicit Deferred(const Operation& operation);
    Operation operation() const;

   private:
    Operation operation_;
    ops::Layout operand_layout_, target_layout_, result_layout_;
    std::byte alpha_[wire::alpha_bytes] = {};
  };
  struct OfTarget {
    ThreadMutex mutex;  // while the target awaits its post, guards the rest
    std::vector<Deferred> deferred;
    std::uint32_t posts_seen = 0;  // that a start has used up
  };

  std::uint32_t size() const { return needs_.words.size(); }
  bool is_here(std::uint32_t target) const { return needs_.shared[target].is_here(); }
  Status check_ranks(const char* call, std::span<const std::uint32_t> ranks) const;
  bool has_posted(std::uint32_t target) const;
  void give_up_post(std::uint32_t target);
  void begin_access(std::uint32_t target);
  std::optional<std::uint32_t> first_awaited() const FARSUM_REQUIRES(needs_.rules.mutex());
  void await_started_posts(Status& failure) FARSUM_REQUIRES(needs_.rules.mutex());
  Status end_access() FARSUM_REQUIRES(needs_.rules.mutex());
  bool has_completed(std::uint64_t expected) const;

  Needs needs_;
  std::unique_ptr<OfTarget[]> of_targets_;  // by target
  std::vector<std::uint32_t> started_targets_ FARSUM_GUARDED_BY(needs_.rules.mutex());
  std::uint64_t completes_expected_ FARSUM_GUARDED_BY(needs_.rules.mutex()) = 0;
};

}  // namespace farsum
