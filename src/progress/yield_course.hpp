// Whether a thread that waits on a crowded node lets others run and looks again, or sleeps at once. Pure: its caller
// says what came of each wait.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farsum {

// A yield between two ranks takes about a microsecond, a sleep with its wake-up thirty. But a yield hands nothing on
// where ranks are in sessions or control groups of their own, where the processor's other task computes, or where the
// rank that is waited for computes. The outcome tells: each wait that yields have not ended lets twice as many later
// waits sleep at once, and one that they have ended makes the next one yield.
//
// k waits were to be skipped after the last one that yields did not end; n of them are left:
//
//   state    a wait begins             yields ended it    they did not
//   n > 0    it sleeps, n becomes n-1  -                  -
//   n = 0    it yields                 k = n = 0          k = n = min(2k + 1, 63)
class YieldCourse {
 public:
  // Two wake-ups: what has not come by then is not on its way.
  static constexpr std::uint64_t longest_ns = 100'000;
  static constexpr std::uint32_t most_skipped = 63;

  // Once a wait, and for one that yields ended() once.
  [[nodiscard]] bool yields() {
    if (left_to_skip_ == 0) return true;
    --left_to_skip_;
    return false;
  }
  void ended(bool by_yields) {
    skipped_ = by_yields ? 0 : std::min(2 * skipped_ + 1, most_skipped);
    left_to_skip_ = skipped_;
  }

 private:
  std::uint32_t skipped_ = 0;       // after the last wait that yields have not ended
  std::uint32_t left_to_skip_ = 0;  // of them
};

}  // namespace farsum
