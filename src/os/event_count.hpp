// Sleep until somebody has changed something: a condition variable without a mutex, for memory shared between
// processes. The condition itself is the caller's; this only makes sure that no change to it is slept through.
#pragma once

#include <cstdint>
#include <limits>

#include "os/futex.hpp"

namespace farsum {

// Waiter:   key = prepare(); if (condition) { cancel(); } else { wait(key, timeout_ns); }  and look again.
// Notifier: change the condition (any store); notify_all().
//
// Who may call: any number of waiters and notifiers, in any process that maps it. Zeroed memory is a valid event count.
// Why no wake-up is lost: both sides begin with a read-modify-write of sleepers_. If the notifier's comes first, the
// waiter's reads from it, so the waiter's look at the condition sees the change. If the waiter's comes first, the
// notifier sees a sleeper and moves epoch_; the waiter either has the new epoch, and with it the change, or an old key
// that no longer puts it to sleep. A crash: a waiter killed between prepare() and the end of wait() leaves sleepers_
// raised for good. From then on every notify_all makes a system call that may wake nobody: slower, never wrong. A
// notifier killed midway has not notified.
template <class Policy>
class alignas(64) BasicEventCount {
 public:
  // Announces a sleeper and returns the key for wait(). Each prepare() is followed by exactly one cancel() or wait().
  std::uint32_t prepare() {
    // Pairs with the read-modify-write in notify_all, in both directions.
    sleepers_.fetch_add(1, std::memory_order_acq_rel);
    // Acquire: a key that holds a notifier's new epoch brings the notifier's change with it.
    return epoch_.load(std::memory_order_acquire);
  }

  // Relaxed: a count that is too high for a moment costs a system call and nothing else.
  void cancel() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

  // Sleeps until a notify_all after prepare(), or timeout_ns nanoseconds (0 means for ever); false when the time was
  // up. May return true for no reason.
  bool wait(std::uint32_t key, std::uint64_t timeout_ns) {
    const WaitResult result = Policy::wait(epoch_, key, timeout_ns);
    // Relaxed: whoever slept before the notification was counted before it.
    const bool others_sleep = sleepers_.fetch_sub(1, std::memory_order_relaxed) != 1;
    if (result == WaitResult::woken && others_sleep) wake_others_in_turn(key);
    return result != WaitResult::timed_out;
  }

  // Wakes everybody who prepared before; returns whether it made a system call.
  bool notify_all() {
    // A read that is also a full barrier: it must not pass the caller's change to the condition, which may be a plain
    // store.
    if (sleepers_.fetch_add(0, std::memory_order_acq_rel) == 0) [[likely]] {
      return false;
    }
    // Pairs with the acquire load in prepare.
    epoch_.fetch_add(1, std::memory_order_release);
    Policy::wake(epoch_, std::numeric_limits<int>::max());
    return true;
  }

  // As notify_all, for many sleepers: wakes at most `at_once` of those who prepared before, and each of these as many
  // more, so that nobody makes the wake-ups of all. For event counts that are else notified by notify_all alone, one
  // notifier at a time, and whose sleepers look again after a time: one that is killed before it has woken others
  // leaves these asleep until then, as does a kernel that wakes a sleeper of later before them.
  bool notify_in_turn(std::uint32_t at_once) {
    if (sleepers_.fetch_add(0, std::memory_order_acq_rel) == 0) [[likely]] {
      return false;
    }
    // Relaxed: published by the epoch.
    in_turn_.store(at_once, std::memory_order_relaxed);
    // Pairs with the acquire loads in prepare and wake_others_in_turn.
    epoch_.fetch_add(1, std::memory_order_release);
    Policy::wake(epoch_, static_cast<int>(at_once));
    return true;
  }

 private:
  // By one that was woken. Whoever slept with the newest key was woken for no reason, and would wake others for none.
  void wake_others_in_turn(std::uint32_t key) {
    if (epoch_.load(std::memory_order_acquire) == key) return;
    // Relaxed: see notify_in_turn.
    const std::uint32_t at_once = in_turn_.load(std::memory_order_relaxed);
    if (at_once != 0) Policy::wake(epoch_, static_cast<int>(at_once));
  }

  // Written by waiters and, for its barrier, by notifiers.
  typename Policy::template Atomic<std::uint32_t> sleepers_;
  // Written by notifiers, when somebody sleeps.
  typename Policy::template Atomic<std::uint32_t> epoch_;
  // How many each of those who are woken wakes; 0: none.
  typename Policy::template Atomic<std::uint32_t> in_turn_;
};

using EventCount = BasicEventCount<SystemAtomics>;
static_assert(sizeof(EventCount) == 64);

}  // namespace farsum
