// Which epochs of a window are open, and whether another may begin (epoch_table.hpp). Calls that begin or end an epoch
// hold its mutex while they find out and change what is open; what one does while another may have to end is done
// without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "window/epoch_table.hpp"
#include "window/epoch_words.hpp"
#include "window/operation_checks.hpp"
#include "window/window_texts.hpp"

namespace farsum {

class EpochRules {
 public:
  // All outlive it. `views` are those of the words.
  EpochRules(EpochWords& words, std::span<const TargetView> views, std::uint32_t promises)
      : words_(words), views_(views), promises_(promises) {
    settle_lockable();
  }

  ThreadMutex& mutex() FARSUM_RETURNS_MUTEX(mutex_) { return mutex_; }

  bool is(EpochBit bit) const FARSUM_REQUIRES(mutex_) { return (state_ & bit) != 0; }
  // Why the call cannot be, null where it can; sentences are made of it only then. `target` is that of a lock.
  const char* why_not(EpochCall call, std::uint32_t target = 0) const FARSUM_REQUIRES(mutex_);
  // The same for one that begins an epoch: that of a fence ends, where nothing was issued in it.
  const char* make_way(EpochCall call, std::uint32_t target = 0) FARSUM_REQUIRES(mutex_);
  // What make_way or why_not has allowed has come to be.
  void enter(EpochCall call) FARSUM_REQUIRES(mutex_) {
    state_ = after(call, state_);
    settle_lockable();
  }
  // False, and nothing has changed, when another epoch includes a target.
  bool set_fence(bool open) FARSUM_REQUIRES(mutex_);
  // The epoch of a fence has ended, and maybe another begun: nothing was issued in that.
  void note_fence() FARSUM_REQUIRES(mutex_);
  // Refuses while a lock or an epoch of start or post is open.
  Status check_closed(const char* call, const WindowTexts& texts) const FARSUM_REQUIRES(mutex_);
  // The window is about to go: no epoch begins any more. The second says that none is open but that of start.
  void close() FARSUM_REQUIRES(mutex_);
  void abandon() FARSUM_REQUIRES(mutex_);

  // An operation was issued that the hot path does not count.
  void note_issued() {
    // Relaxed: epoch calls come before or after it in the program's order. Written once an epoch.
    if (!issued_.load(std::memory_order_relaxed)) issued_.store(true, std::memory_order_relaxed);
  }
  // What the word of a target must be at least for a flush that the program asks for.
  std::int32_t least_open_to_flush() const {
    return (promises_ & promise_strict_epochs) != 0 ? passive_epoch : active_epoch;
  }

 private:
  class Facts;
  void settle_lockable() FARSUM_REQUIRES(mutex_);

  EpochWords& words_;
  std::span<const TargetView> views_;
  std::uint32_t promises_;
  ThreadMutex mutex_;
  EpochState state_ FARSUM_GUARDED_BY(mutex_) = 0;
  // Hot operations when the last fence ended, and whether there were others since.
  std::uint64_t hot_at_fence_ FARSUM_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> issued_{false};
};

}  // namespace farsum
