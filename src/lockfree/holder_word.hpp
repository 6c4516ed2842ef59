// A lock of one word: taken by one locked instruction, released by a plain store, and it names its holder. It is held
// for microseconds, never asleep and never across a network. It is not fair; lock_queue.hpp has the fair one. Stripe
// locks are made of it, and the guards of shared locks.
#pragma once

#include <cstdint>

#include "os/futex.hpp"

namespace farsum {

// Who may call: any thread of any process that maps it. A holder id is any number but 0 and the largest (rank + 1);
// threads may share one, and the lock is not recursive. Zeroed memory is a free lock.
//
// A stripe may be lock-free (stripe_lock.hpp): all that wait here then give up at once, also those that began before.
// Locks that nobody makes so need not think of it.
//
// Waiters never depend on being woken: after a short spin they sleep for bounded times, so release needs no barrier and
// no wake-up can be lost. A crash: a killed holder leaves its id in the word. acquire_slow then gives up; break_dead
// takes the lock over. What the lock protects may be half written.
//
// What lies beside the word for its holder is here, too, for a class whose fields are in one place has a layout that
// offsets can be asked of.
struct NothingBeside {};
template <class Policy, class Beside = NothingBeside>
class BasicHolderWord {
 public:
  // Acquire pairs with the release store in release().
  bool try_acquire(std::uint32_t me) {
    std::uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Takes the lock; false when its holder is dead, is_dead(holder id) says so, and the lock is left with it; or when
  // the stripe is lock-free.
  template <class DeadCheck>
  bool acquire(std::uint32_t me, DeadCheck&& is_dead) {
    if (try_acquire(me)) [[likely]] {
      return true;
    }
    return acquire_slow(me, is_dead);
  }

  // Looks for some ten microseconds, less and less often: each look takes the line from the holder, who then pays for
  // it when it releases and takes the lock again.
  [[gnu::noinline]] bool try_for_a_while(std::uint32_t me) {
    int pauses = 1;
    for (int i = 0; i < Policy::spin_limit; ++i) {
      const std::uint32_t seen = look();
      if (seen == 0 && try_acquire(me)) {
        return true;
      }
      if (seen == lock_free_word) {
        return false;
      }
      for (int pause = 0; pause < pauses; ++pause) {
        Policy::pause();
      }
      pauses = pauses < most_pauses ? pauses * 2 : most_pauses;
    }
    return false;
  }

  template <class DeadCheck>
  [[gnu::noinline]] bool acquire_slow(std::uint32_t me, DeadCheck&& is_dead) {
    if (try_for_a_while(me)) {
      return true;
    }
    return acquire_by_sleeping(me, is_dead);
  }

  // Release pairs with the acquire in try_acquire and break_dead.
  void release() { word_.store(0, std::memory_order_release); }

  // 0 when free or lock-free. Acquire: whoever sees a holder sees what that holder wrote before it got here.
  std::uint32_t holder() const {
    const std::uint32_t word = word_.load(std::memory_order_acquire);
    return word == lock_free_word ? 0 : word;
  }

  // Takes the lock from `dead`, who will never release it; false when it is no longer with `dead`.
  bool break_dead(std::uint32_t dead, std::uint32_t me) {
    // Acquire: the kernel's notice of death comes after every store of the dead, and this after the notice.
    return word_.compare_exchange_strong(dead, me, std::memory_order_acquire, std::memory_order_relaxed);
  }

 protected:
  static constexpr std::uint32_t lock_free_word = ~std::uint32_t{0};

  // Written by holders and those who try.
  typename Policy::template Atomic<std::uint32_t> word_;
  // Written by holders.
  [[no_unique_address]] Beside beside_;

 private:
  static constexpr int most_pauses = 64;
  static constexpr std::uint64_t shortest_sleep_ns = 20'000;
  static constexpr std::uint64_t longest_sleep_ns = 1'000'000;
  static constexpr std::uint64_t liveness_check_ns = 10'000'000;

  // Relaxed: only decides whether to try.
  std::uint32_t look() const { return word_.load(std::memory_order_relaxed); }

  template <class DeadCheck>
  bool acquire_by_sleeping(std::uint32_t me, DeadCheck& is_dead) {
    std::uint64_t sleep_ns = shortest_sleep_ns;
    std::uint64_t waited_ns = 0;
    std::uint32_t last_holder = 0;
    while (!try_acquire(me)) {
      // Relaxed: a hint, and break_dead compares again.
      const std::uint32_t holder = word_.load(std::memory_order_relaxed);
      if (holder == lock_free_word) {
        return false;
      }
      if (holder != last_holder) {
        // The lock moves: start over with short sleeps.
        last_holder = holder;
        sleep_ns = shortest_sleep_ns;
        waited_ns = 0;
      }
      if (waited_ns >= liveness_check_ns && holder != 0) {
        waited_ns = 0;
        if (is_dead(holder)) {
          return false;
        }
      }
      Policy::sleep(sleep_ns);
      waited_ns += sleep_ns;
      sleep_ns = sleep_ns * 2 < longest_sleep_ns ? sleep_ns * 2 : longest_sleep_ns;
    }
    return true;
  }
};

}  // namespace farsum
