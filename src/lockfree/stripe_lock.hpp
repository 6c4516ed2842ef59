// The lock of one stripe of a process's memory: a word that names its holder, and what it takes to leave the stripe to
// the processor's atomics.
#pragma once

#include <cstdint>

#include "lockfree/holder_word.hpp"
#include "os/futex.hpp"

namespace farsum {

// What a holder counts, see count_single.
template <class Policy>
struct BasicStripeCounts {
  typename Policy::template Guarded<std::uint32_t> singles;
  typename Policy::template Guarded<std::uint32_t> revocations;
};

// A stripe may be lock-free (lockfree/lock_free_permit.hpp): then it can be had by revoke_stripe only. For the rest it
// is the word that it is made of: who may call, and what a crash leaves behind.
template <class Policy>
class alignas(64) BasicStripeLock : public BasicHolderWord<Policy, BasicStripeCounts<Policy>> {
  using Base = BasicHolderWord<Policy, BasicStripeCounts<Policy>>;
  using Base::beside_;
  using Base::lock_free_word;
  using Base::word_;

 public:
  // Acquire pairs with the release in release_lock_free: what was done under the lock comes before.
  bool is_lock_free() const { return word_.load(std::memory_order_acquire) == lock_free_word; }
  // By the holder: the stripe is lock-free from here on.
  void release_lock_free() { word_.store(lock_free_word, std::memory_order_release); }
  // The first step of revoke_stripe, which alone calls it.
  bool try_revoke(std::uint32_t me) {
    std::uint32_t expected = lock_free_word;
    if (!word_.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    if (beside_.revocations < most_revocations_counted) beside_.revocations = beside_.revocations + 1;
    beside_.singles = 0;
    return true;
  }
  // By the holder, for each update of a single element: whether there were enough of them for a lock-free stripe to
  // pay. A single gains some 5 ns there and revoking it costs 21 to 23 us (2 virtual processors), so that it takes
  // about 4400 to earn that back; the number grows where stripes are revoked again and again.
  bool count_single() {
    const std::uint32_t singles = beside_.singles + 1;
    beside_.singles = singles;
    return singles >= least_singles_to_go_lock_free << beside_.revocations;
  }
  // Begins to count anew.
  void forget_singles() { beside_.singles = 0; }

 private:
  static constexpr std::uint32_t least_singles_to_go_lock_free = 4096;
  static constexpr std::uint32_t most_revocations_counted = 4;
};

using StripeLock = BasicStripeLock<SystemAtomics>;
static_assert(sizeof(StripeLock) == 64);

}  // namespace farsum
