// The lock of one stripe of a process's memory: a word that names its holder, and what it takes to leave the stripe
// open to the processor's atomics.
#pragma once

#include <cstdint>

#include "lockfree/holder_word.hpp"
#include "os/futex.hpp"

namespace farsum {

// What a holder counts, see count_single.
template <class Policy>
struct BasicStripeCounts {
  typename Policy::template Guarded<std::uint32_t> singles;
  typename Policy::template Guarded<std::uint32_t> closings;
};

// A stripe may be open (lockfree/word_pass.hpp): then it can be had by close_stripe only. For the rest it is the word
// that it is made of: who may call, and what a crash leaves behind.
template <class Policy>
class alignas(64) BasicStripeLock : public BasicHolderWord<Policy, BasicStripeCounts<Policy>> {
  using Base = BasicHolderWord<Policy, BasicStripeCounts<Policy>>;
  using Base::beside_;
  using Base::open_word;
  using Base::word_;

 public:
  // Acquire pairs with the release in release_open: what was done under the lock comes before.
  bool is_open() const { return word_.load(std::memory_order_acquire) == open_word; }
  // By the holder: the stripe is open from here on.
  void release_open() { word_.store(open_word, std::memory_order_release); }
  // The first step of close_stripe, which alone calls it.
  bool try_close(std::uint32_t me) {
    std::uint32_t expected = open_word;
    if (!word_.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    if (beside_.closings < most_closings_counted) beside_.closings = beside_.closings + 1;
    beside_.singles = 0;
    return true;
  }
  // By the holder, for each update of a single element: whether there were enough of them for opening to pay. A single
  // gains some 5 ns in an open stripe and closing it costs 21 to 23 us (2 virtual processors), so that it takes about
  // 4400 to earn a closing back; the number grows where stripes are closed again and again.
  bool count_single() {
    const std::uint32_t singles = beside_.singles + 1;
    beside_.singles = singles;
    return singles >= least_singles_to_open << beside_.closings;
  }
  // Begins to count anew.
  void forget_singles() { beside_.singles = 0; }

 private:
  static constexpr std::uint32_t least_singles_to_open = 4096;
  static constexpr std::uint32_t most_closings_counted = 4;
};

using StripeLock = BasicStripeLock<SystemAtomics>;
static_assert(sizeof(StripeLock) == 64);

}  // namespace farsum
