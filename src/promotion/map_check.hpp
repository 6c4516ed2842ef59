// Whether memory is still mapped as it was when its move was planned: another thread of the program may have unmapped
// it and mapped something else there. Asked while the threads are held, so it allocates nothing and asks the kernel
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "promotion/page_move.hpp"

namespace farsum::os {

// A piece as it has to be: all of it mapped so.
struct ExpectedPiece {
  Stretch at;
  int protection = 0;
  bool shared = false;
  std::uint64_t device = 0;       // of the file; 0 for anonymous memory
  std::uint64_t inode = 0;        // likewise
  std::uint64_t file_offset = 0;  // of the piece's first byte; of a file only
};

// `pieces` in ascending order. False also where /proc/self/maps cannot be read. `buffer` is for its text.
[[nodiscard]] bool are_mapped(std::span<const ExpectedPiece> pieces, std::span<char> buffer);

}  // namespace farsum::os
