// How often a rank that locks all offers it to all without a visit of each lock (lockfree/lock_bias.hpp): seldom where
// others' exclusive locks end the offers before they have paid. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farsum {

// An offer costs a visit of each lock, and the first exclusive lock of each a look at all ranks.
class OfferPace {
 public:
  static constexpr std::uint32_t shortest = 64;
  static constexpr std::uint32_t longest = 65'536;

  // A lock_all that was by bias.
  void note_held() {
    held_ = std::min(held_ + 1, shortest);
    queued_ = 0;
  }
  // One that was not; whether an offer is due.
  bool note_queued() {
    if (++queued_ < interval_) return false;
    interval_ = held_ < shortest ? std::min(2 * interval_, longest) : shortest;
    queued_ = held_ = 0;
    return true;
  }

 private:
  std::uint32_t interval_ = shortest;  // lock_alls in the queues before an offer
  std::uint32_t queued_ = 0;           // since the last that was by bias, or an offer
  std::uint32_t held_ = 0;             // by bias since the last offer, as far as it matters
};

}  // namespace farsum
