// Time and statistics of the engine's benchmarks, and the one way in which anything is compared: the limit and ours in
// turn, pair after pair, within one run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

namespace bench {

// Not slewed by NTP. Its 20 ns or so are spread over a batch, or are the same on both sides.
inline std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// The value that a share `at` (0 to 1) of the values lie below; 0 when there are none.
inline double quantile(std::vector<double> values, double at) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = at * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

// What one side of a pair gives: its figure, in the unit of its row, and how many operations made it.
struct Sample {
  double figure = 0;
  std::uint64_t operations = 0;
};

struct Pairs {
  std::vector<double> ours = {};
  std::vector<double> limit = {};

  [[nodiscard]] std::vector<double> ratios() const {
    std::vector<double> result;
    for (std::size_t pair = 0; pair < ours.size(); ++pair) result.push_back(ours[pair] / limit[pair]);
    return result;
  }
};

// Keeps the compiler from dropping a computation whose result nobody reads.
template <class Value>
inline void keep(Value& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

}  // namespace bench
