// The bell of one receiver: up to 1024 senders each own a bit, and a sender makes a system call only if the receiver
// sleeps. It says who may have work, not what: the work lies in the sender's ring.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "os/futex.hpp"

namespace farsum {

// Who may call: any number of threads ring() and wake(); one receiver thread calls collect(), anything() and sleep().
// Capacity: senders 0 to 1023. Zeroed memory is a valid doorbell.
//
// A crash: each step of ring() leaves a bell that the other senders can ring. Killed between its bit and the summary,
// or before the wake, a sender has not rung, and only its own work goes unnoticed until its next bit or the receiver's
// next look. Nobody relies on another's system call: armed_ is cleared for the others only after the wake was made. A
// receiver that is killed leaves bits behind that nobody reads.
//
// A receiver that waits for more than the bell sleeps on descriptors, one of which is its own for this: who finds it
// asleep so makes that one readable, by a function, for it takes more than this memory. Bits come first all the same:
// what the descriptor holds may be thrown away by who collects afterwards.
template <class Policy>
class alignas(64) BasicDoorbell {
 public:
  static constexpr std::size_t max_senders = 1024;

  // Of receivers that never sleep on descriptors.
  struct NoDescriptor {
    void operator()() const {}
  };

  // Says that `sender` has work, published before by any store; returns whether this made a system call.
  //
  // The bit is set by a locked instruction even if it is seen set already. The work was published by a plain store,
  // which may still wait in this processor's store buffer while the receiver clears the bit and finds no work; a
  // barrier in between would cost as much as the instruction it saves.
  template <class WakeDescriptor = NoDescriptor>
  bool ring(std::uint32_t sender, WakeDescriptor&& wake_descriptor = {}) {
    const std::uint32_t group = sender / 64;
    // seq_cst, like every access to groups_ and summary_ here and in collect and sleep: bit before summary before
    // armed_ on this side, armed_ before summary before bits on the other, needs one order of all of them. On x86 it
    // costs nothing more.
    groups_[group].fetch_or(std::uint64_t{1} << (sender % 64), std::memory_order_seq_cst);
    const std::uint64_t group_bit = std::uint64_t{1} << group;
    // Seen set after our bit: the collect that clears it comes later, and reads the groups later still.
    if ((summary_.load(std::memory_order_seq_cst) & group_bit) == 0) {
      summary_.fetch_or(group_bit, std::memory_order_seq_cst);
    }
    const std::uint32_t armed = armed_.load(std::memory_order_seq_cst);
    if ((armed & asleep) == 0) [[likely]] {
      return false;
    }
    wake_receiver(armed, wake_descriptor);
    return true;
  }

  // Clears the bits, then calls visit(sender) for each that was set; returns how many. Work published during the visits
  // rings again.
  template <class Visit>
  std::size_t collect(Visit&& visit) {
    // Relaxed: a miss is caught by the next look, and before sleeping by the exchange in sleep().
    if (summary_.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    std::size_t count = 0;
    std::uint64_t groups = summary_.exchange(0, std::memory_order_seq_cst);
    while (groups != 0) {
      const auto group = static_cast<std::uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      std::uint64_t bits = groups_[group].exchange(0, std::memory_order_seq_cst);
      while (bits != 0) {
        visit(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
        bits &= bits - 1;
        ++count;
      }
    }
    return count;
  }

  // Acquire, so that what a ringer published can be seen; the decision to sleep is not taken on this.
  bool anything() const { return summary_.load(std::memory_order_acquire) != 0; }

  // Sleeps until somebody rings, at most timeout_ns nanoseconds (0 means for ever). Returns true when there may be work
  // or wake() was called, false when the time was up.
  bool sleep(std::uint64_t timeout_ns) {
    return sleep(timeout_ns, [] { return true; });
  }

  // The same where may_sleep() still says so once the bell is armed; else true. Whoever makes it say no, by a seq_cst
  // store, calls rouse() afterwards.
  template <class MaySleep>
  bool sleep(std::uint64_t timeout_ns, MaySleep&& may_sleep) {
    // Acquire: a key with a ringer's new epoch brings its bits along.
    const std::uint32_t key = epoch_.load(std::memory_order_acquire);
    arm(asleep);
    if (work_or_stop() || !may_sleep()) {
      disarm();
      return true;
    }
    const WaitResult result = Policy::wait(epoch_, key, timeout_ns);
    disarm();
    return result != WaitResult::timed_out || work_or_stop();
  }

  // The same by wait(), which sleeps until the descriptor is readable, or something else that it waits for; it empties
  // the descriptor before it returns, not before it sleeps, and returns false when only its time was up.
  template <class MaySleep, class Wait>
  bool sleep_on_descriptor(MaySleep&& may_sleep, Wait&& wait) {
    arm(asleep | by_descriptor);
    if (work_or_stop() || !may_sleep()) {
      disarm();
      return true;
    }
    const bool woken = wait();
    disarm();
    return woken || work_or_stop();
  }

  // Makes this and every later sleep return at once. Any thread, any process.
  template <class WakeDescriptor = NoDescriptor>
  void wake(WakeDescriptor&& wake_descriptor = {}) {
    // seq_cst: pairs with the look at stopped_ after arming, as a bit does.
    stopped_.store(1, std::memory_order_seq_cst);
    rouse(wake_descriptor);
  }

  // Ends the sleep that is under way, if one is: see may_sleep. Returns whether this made a system call.
  template <class WakeDescriptor = NoDescriptor>
  bool rouse(WakeDescriptor&& wake_descriptor = {}) {
    // seq_cst: behind the caller's change, as in ring().
    const std::uint32_t armed = armed_.load(std::memory_order_seq_cst);
    if ((armed & asleep) == 0) return false;
    wake_receiver(armed, wake_descriptor);
    return true;
  }

  // Acquire: what was written before wake() can be seen.
  bool stopped() const { return stopped_.load(std::memory_order_acquire) != 0; }

 private:
  using Word = typename Policy::template Atomic<std::uint64_t>;
  using SmallWord = typename Policy::template Atomic<std::uint32_t>;

  static constexpr std::uint32_t asleep = 1;
  static constexpr std::uint32_t by_descriptor = 2;
  static constexpr std::uint32_t how_mask = 3;

  // armed_ holds the number of the sleep, times four, plus how. The number keeps a slow ringer from disarming a later
  // sleep.
  void arm(std::uint32_t how) {
    // Relaxed: the receiver alone changes the number.
    const std::uint32_t number = (armed_.load(std::memory_order_relaxed) | how_mask) + 1;
    // The exchange is a full barrier: the look at the summary comes after it in the one order.
    armed_.exchange(number | how, std::memory_order_seq_cst);
  }

  // Relaxed: a ringer that still sees the bell armed makes a needless system call.
  void disarm() { armed_.store(armed_.load(std::memory_order_relaxed) & ~asleep, std::memory_order_relaxed); }

  bool work_or_stop() const {
    return summary_.load(std::memory_order_seq_cst) != 0 || stopped_.load(std::memory_order_seq_cst) != 0;
  }

  // Rare: the receiver sleeps or is about to.
  template <class WakeDescriptor>
  [[gnu::noinline]] void wake_receiver(std::uint32_t armed, WakeDescriptor& wake_descriptor) {
    if ((armed & by_descriptor) != 0) {
      wake_descriptor();
    } else {
      // Release: pairs with the acquire load of the key.
      epoch_.fetch_add(1, std::memory_order_release);
      Policy::wake(epoch_, std::numeric_limits<int>::max());
    }
    // After the wake, so that a kill between the two leaves the bell armed for the next ringer. Relaxed: only saves
    // others the call.
    armed_.compare_exchange_strong(armed, armed & ~asleep, std::memory_order_relaxed, std::memory_order_relaxed);
  }

  // Written by senders that find the receiver asleep.
  SmallWord epoch_;
  // Written by the receiver before and after it sleeps, and by senders that woke it.
  SmallWord armed_;
  // Written once, at shutdown.
  SmallWord stopped_;
  // Written by senders (set) and the receiver (clear).
  alignas(64) Word summary_;
  alignas(64) Word groups_[max_senders / 64];
};

using Doorbell = BasicDoorbell<SystemAtomics>;

}  // namespace farsum
