// A stretch of the node segment's heap, and where one may start.
#pragma once

#include <cstdint>

namespace farsum {

struct HeapExtent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// So many bytes past a multiple of `bytes`, a power of two.
struct HeapAlignment {
  std::uint64_t bytes;
  std::uint64_t past;
};

}  // namespace farsum
