// How much a process has done through the views of a window. All relaxed: statistics, approximate while several threads
// are at it.
#pragma once

#include <cstdint>
#include <span>

#include "window/hot_window.hpp"

namespace farsum {

struct Traffic {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;

  Traffic& operator+=(const Traffic& other) {
    operations += other.operations;
    bytes += other.bytes;
    return *this;
  }
};

// What the hot path has finished.
inline Traffic hot_traffic(const TargetView& view) {
  const std::uint64_t words = view.hot_words.load(std::memory_order_relaxed);
  return {words + view.hot_operations.load(std::memory_order_relaxed),
          8 * words + view.hot_bytes.load(std::memory_order_relaxed)};
}
inline Traffic hot_traffic(std::span<const TargetView> views) {
  Traffic sum;
  for (const TargetView& view : views) sum += hot_traffic(view);
  return sum;
}

// The same with what went other ways.
inline Traffic traffic(const TargetView& view) {
  Traffic all = hot_traffic(view);
  all += {view.other_operations.load(std::memory_order_relaxed), view.other_bytes.load(std::memory_order_relaxed)};
  return all;
}

}  // namespace farsum
