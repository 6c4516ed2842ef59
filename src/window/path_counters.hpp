// Operations carried out, per path, of one process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "window/paths.hpp"

namespace farsum {

struct PathCounters {
  std::atomic<std::uint64_t> operations[path_count] = {};
  std::atomic<std::uint64_t> bytes[path_count] = {};

  // Relaxed: statistics.
  void count(Path path, std::uint64_t moved) {
    const auto index = static_cast<std::size_t>(path);
    operations[index].fetch_add(1, std::memory_order_relaxed);
    bytes[index].fetch_add(moved, std::memory_order_relaxed);
  }
};

}  // namespace farsum
