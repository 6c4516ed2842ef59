// How large a cluster is simulated, how fast and in how much memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "effort.hpp"

namespace bench {

struct Scale {
  std::uint32_t nodes = 0;
  std::uint32_t ranks = 0;
  std::size_t calls = 0;
  std::uint64_t letters = 0;
  Effort effort = {};
};

// Reductions over 16,384 nodes of two ranks, whose cards take floating point, with noise that disturbs each call.
Scale measure_scale();
std::string text_of(const Scale& scale);
std::string lines_of(const Scale& scale);

}  // namespace bench
