#include "transport/shm/touched_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"

namespace farsum {
namespace {

// A hole costs a call, or two.
constexpr int most_pieces = 64;
// Pages that are not there cost a look each: short runs are looked at shortly.
constexpr std::size_t first_look_pages = 32;
constexpr std::size_t most_look_pages = 1024;

// How many of the pages at `memory` are in RAM before the first that is not.
std::size_t leading_pages(std::byte* memory, std::size_t pages) {
  std::array<unsigned char, most_look_pages> in_ram;
  if (mincore(memory, pages * page_bytes, in_ram.data()) != 0) return 0;
  const auto end = in_ram.begin() + static_cast<std::ptrdiff_t>(pages);
  return static_cast<std::size_t>(
      std::find_if(in_ram.begin(), end, [](unsigned char page) { return (page & 1) == 0; }) - in_ram.begin());
}

}  // namespace

// Holes are asked of the file, for a page that is not in RAM may be swapped out; how far data reaches is asked of the
// map, for the file would look on into what lies behind.
std::optional<std::uint64_t> zero_what_was_touched(int fd, std::uint64_t offset, std::uint64_t bytes, std::byte* memory,
                                                   std::uint64_t most_bytes) {
  const std::uint64_t end = offset + bytes;
  std::uint64_t at = offset, touched = 0;
  for (int piece = 0; piece < most_pieces; ++piece) {
    const off_t found = at < end ? lseek(fd, static_cast<off_t>(at), SEEK_DATA) : -1;
    // ENXIO: only holes follow.
    if (found < 0 && at < end && errno != ENXIO) return std::nullopt;
    if (found < 0 || static_cast<std::uint64_t>(found) >= end) return touched;
    at = static_cast<std::uint64_t>(found);
    for (std::size_t look = first_look_pages;; look = std::min(2 * look, most_look_pages)) {
      const auto pages = static_cast<std::size_t>(std::min<std::uint64_t>(look, (end - at) / page_bytes));
      const std::size_t in_ram = pages == 0 ? 0 : leading_pages(memory + (at - offset), pages);
      if (in_ram == 0 && at == static_cast<std::uint64_t>(found)) return std::nullopt;
      touched += in_ram * page_bytes;
      if (touched > most_bytes) return std::nullopt;
      std::memset(memory + (at - offset), 0, in_ram * page_bytes);
      at += in_ram * page_bytes;
      if (in_ram < look) break;
    }
  }
  return std::nullopt;
}

}  // namespace farsum
