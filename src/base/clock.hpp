// The clock that waits, links and questions go by.
#pragma once

#include <chrono>
#include <cstdint>

namespace farsum {

// Of CLOCK_MONOTONIC.
inline std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace farsum
