// Which epochs of a window are open, and whether another may begin (epoch_table.hpp). Calls that begin or end an epoch
// hold its mutex while they find out and change what is open; what one does while another may have to end is done
// without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "base/status.hpp"
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

  std::mutex& mutex() { return mutex_; }

  // ---- with the mutex ----

  bool is(EpochBit bit) const { return (state_ & bit) != 0; }
  // Why the call cannot be, null where it can; sentences are made of it only then. `target` is that of a lock.
  const char* why_not(EpochCall call, std::uint32_t target = 0) const;
  // The same for one that begins an epoch: that of a fence ends, where nothing was issued in it.
  const char* make_way(EpochCall call, std::uint32_t target = 0);
  // What make_way or why_not has allowed has come to be.
  void enter(EpochCall call) {
    state_ = after(call, state_);
    settle_lockable();
  }
  // False, and nothing has changed, when another epoch includes a target.
  bool set_fence(bool open);
  // The epoch of a fence has ended, and maybe another begun: nothing was issued in that.
  void note_fence();
  // Refuses while a lock or an epoch of start or post is open.
  Status check_closed(const char* call, const WindowTexts& texts) const;
  // The window is about to go: no epoch begins any more. The second says that none is open but that of start.
  void close();
  void abandon();

  // ---- by any thread ----

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
  void settle_lockable();

  EpochWords& words_;
  std::span<const TargetView> views_;
  std::uint32_t promises_;
  std::mutex mutex_;
  EpochState state_ = 0;
  std::uint64_t hot_at_fence_ = 0;   // hot operations when the last fence ended
  std::atomic<bool> issued_{false};  // others since
};

}  // namespace farsum
