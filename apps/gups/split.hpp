// How the table and the updates are dealt to the ranks: in consecutive parts that differ by one at most, as HPCC does.
#pragma once

#include <bit>
#include <cstdint>

namespace gups {

struct Location {
  int rank;
  std::uint64_t offset;  // in bytes, within the rank's part
};

// `total` things over `ranks` ranks; the first total % ranks of them get one more.
class Split {
 public:
  Split(std::uint64_t total, int ranks)
      : least_(total / static_cast<std::uint64_t>(ranks)),
        remainder_(total % static_cast<std::uint64_t>(ranks)),
        shift_(remainder_ == 0 && std::has_single_bit(least_) ? std::countr_zero(least_) : -1) {}

  [[nodiscard]] std::uint64_t count(int rank) const {
    return least_ + (static_cast<std::uint64_t>(rank) < remainder_ ? 1 : 0);
  }

  [[nodiscard]] std::uint64_t first(int rank) const {
    const auto r = static_cast<std::uint64_t>(rank);
    return r * least_ + (r < remainder_ ? r : remainder_);
  }

  // Where the 8-byte word `index` of the whole lies.
  [[nodiscard]] Location locate(std::uint64_t index) const {
    if (shift_ >= 0) return {static_cast<int>(index >> shift_), (index & (least_ - 1)) * 8};
    return locate_unevenly(index);
  }

 private:
  [[nodiscard]] Location locate_unevenly(std::uint64_t index) const {
    const std::uint64_t top = (least_ + 1) * remainder_;
    if (index < top) return {static_cast<int>(index / (least_ + 1)), index % (least_ + 1) * 8};
    const std::uint64_t rest = index - top;
    return {static_cast<int>(rest / least_ + remainder_), rest % least_ * 8};
  }

  std::uint64_t least_;
  std::uint64_t remainder_;
  int shift_;  // where all parts are one power of two: its logarithm, else -1
};

}  // namespace gups
