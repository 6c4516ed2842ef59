// What ranks bring to a call whose answer is checked, and its sum: whole numbers, which a double holds exactly. They
// differ by rank, element and call.
#pragma once

#include <cstddef>

namespace collectives {

[[nodiscard]] inline double brought(int rank, std::size_t element, int round) {
  return static_cast<double>((rank + 1) * (static_cast<int>(element % 1000) + 1) + round);
}

[[nodiscard]] inline double sum_of(int ranks, std::size_t element, int round) {
  double all = 0;
  for (int rank = 0; rank < ranks; ++rank) all += brought(rank, element, round);
  return all;
}

}  // namespace collectives
