// What all that `farsum info` measures is timed with.
#pragma once

#include <farsum.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace farsum::cli {

inline void require(farsum_status status) {
  if (status != FARSUM_OK) throw std::runtime_error(farsum_last_error());
}

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of one value at least.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of as many: what a tenth of them stay below. So it is of calls that no other program disturbed, where most were not.
inline double lower_decile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now));
}

}  // namespace farsum::cli
