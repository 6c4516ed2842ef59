// Moves whole pages of this process between private anonymous memory and a shared file, at the same addresses. It asks
// nothing: who calls knows that the pages may be moved and that nobody stores to them meanwhile. For promotion alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"

namespace farsum::os {

// Stretches move in steps of this many bytes, so that a stretch never needs twice its memory.
constexpr std::size_t step_bytes = std::size_t{64} << 20;

[[nodiscard]] std::size_t page_bytes();

inline void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

struct Stretch {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool is_empty() const { return begin >= end; }
  std::size_t bytes() const { return is_empty() ? 0 : end - begin; }
  bool holds(const Stretch& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const Stretch& other) const { return begin < other.end && other.begin < end; }
};

// The bytes at `address`; a length that wraps around reaches to the end.
[[nodiscard]] Stretch stretch_of(const void* address, std::size_t bytes);

// The pages that lie wholly inside.
[[nodiscard]] Stretch whole_pages(const Stretch& range);

// Who carries the calls to the kernel.
enum class Carrier : std::uint8_t {
  library,  // libraries that cache registrations of memory intercept these, and so know
  kernel,   // nobody sees them, no lock is taken: the only one while threads are held (promotion/held_threads.hpp)
};

// Has the kernel back with huge pages what of a step's place in the file can be: whole huge pages, and the addresses
// that the step comes from congruent to the file's offsets. All of them then exist, so the step is one that was
// touched. The settings that a kernel has for shared memory do not count, as where MADV_COLLAPSE is asked for. False if
// it gives none, and then the step moves as well.
[[nodiscard]] bool make_huge(const Stretch& step, int fd, std::uint64_t file_offset,
                             Carrier carrier = Carrier::library);

// What a move may return besides: the memory is gone, for the kernel has unmapped it and taken nothing in its place.
// The program cannot go on.
constexpr int step_is_lost = -1;

// Moves one step into a file and maps that over it. Only `runs` of it are copied, which are in ascending order; the
// rest holds nothing but zeros, nor does the file there. Returns 0, an errno, and then nothing has changed, or
// step_is_lost.
[[nodiscard]] int move_to_file(const Stretch& step, std::span<const Stretch> runs, int fd, std::uint64_t file_offset,
                               Carrier carrier = Carrier::library);

struct MoveBack {
  int protection = 3;             // PROT_ of the memory, before and afterwards
  bool gives_pages_back = false;  // empties the file's part once it is copied
  int huge_page_advice = 0;       // what the user had advised, or 0
  // The file and where in it the step lies: what the file does not hold is not copied. -1: all is.
  int fd = -1;
  std::uint64_t file_offset = 0;
};

// Puts private anonymous memory with the same contents in place of one step of a shared map. Async-signal-safe. Returns
// 0, an errno, and then nothing has changed, or step_is_lost.
[[nodiscard]] int move_to_private(const Stretch& step, const MoveBack& options, Carrier carrier = Carrier::library);

// Tells those who watch calls of the library that the pages of a stretch are others now. Changes nothing.
void announce_move(const Stretch& stretch);

// Calls `move` for each step of a stretch until one returns other than 0, and returns that. Steps end where huge pages
// do, so that none is torn.
template <class Move>
int for_each_step(const Stretch& stretch, Move move) {
  for (std::uintptr_t begin = stretch.begin; begin < stretch.end;) {
    const bool is_last = stretch.end - begin <= step_bytes;
    const Stretch step{begin, is_last ? stretch.end : (begin + step_bytes) & ~(huge_page_bytes - 1)};
    if (const int error_number = move(step)) return error_number;
    begin = step.end;
  }
  return 0;
}

}  // namespace farsum::os
