// Small types that keep look-alike integers apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farsum {

// A rank of the job (not of a group). Groups translate.
using Rank = std::uint32_t;

// Of a window whose ranks share a node below 2^32, drawn by the node; else (rank of the job that made it + 1) << 32,
// plus a number that it drew.
using WindowId = std::uint64_t;

inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;
// Of a transparent huge page over pages of 4 KiB.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Wide enough for the sum of any offset and any length.
__extension__ using WideInteger = __int128;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace farsum
