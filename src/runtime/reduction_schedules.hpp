// How so many nodes reduce, told in a number: two jobs of which it is the same combine in the same order.
#pragma once

#include <cstdint>

namespace farsum {

struct ReductionSchedule {
  std::uint32_t degree = 0;  // of the tree; 0: all tell each other at once
  std::uint64_t hash = 0;    // of the lists of all nodes
};

// `wanted` is as FARSUM_REDUCE_DEGREE.
ReductionSchedule reduction_schedule(std::uint32_t nodes, std::uint32_t wanted);

}  // namespace farsum
