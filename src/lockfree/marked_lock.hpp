// A lock that nobody waits for: who does not get it leaves a mark, and the holder, which cannot let go of a marked
// lock, does its work once more in the other's stead.
#pragma once

#include <cstdint>

#include "os/futex.hpp"

namespace farsum {

// Use:   if (lock.try_claim()) do { work(); } while (!lock.release());
//
// Whatever was done before a try_claim() that failed is seen by a work() that begins later. Who may call: any number of
// threads. Zeroed memory is a free lock. A crash: a dead holder keeps it.
template <class Policy>
class BasicMarkedLock {
 public:
  // Acquire pairs with the release of the last holder.
  bool try_claim() {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      // Release: the holder sees with the mark what was done before it.
      const std::uint32_t wanted = seen == free ? held : marked;
      if (word_.compare_exchange_strong(seen, wanted, std::memory_order_acq_rel, std::memory_order_relaxed))
        return seen == free;
    }
  }

  // False: it was marked meanwhile; the mark is gone, and the caller still holds the lock.
  bool release() {
    std::uint32_t seen = held;
    if (word_.compare_exchange_strong(seen, free, std::memory_order_release, std::memory_order_relaxed)) return true;
    // Acquire pairs with the release of whoever left the mark.
    word_.exchange(held, std::memory_order_acq_rel);
    return false;
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t marked = 2;

  typename Policy::template Atomic<std::uint32_t> word_{};
};

using MarkedLock = BasicMarkedLock<SystemAtomics>;

}  // namespace farsum
