#include "transport/sim/sim_memory.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace farsum {

namespace {

// Shared locks lie at pairs of lines.
constexpr std::size_t allocation_alignment = 2 * cache_line_bytes;
constexpr std::size_t arena_bytes = std::size_t{64} << 30;
// Free in ordinary processes and under the address and the thread sanitizer, whose shadows leave little else.
constexpr std::uint64_t first_arena_address = 0x7e90'0000'0000;
constexpr int most_worlds_at_once = 4;

std::byte* map_arena_at(std::uint64_t address, int extra_flags) {
  void* const mapped = mmap(reinterpret_cast<void*>(address), arena_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Worlds that live at the same time get neighbouring arenas: their addresses agree in all bits below the arena's size.
std::byte* map_arena() {
  for (int i = 0; i < most_worlds_at_once; ++i) {
    const std::uint64_t address = first_arena_address + static_cast<std::uint64_t>(i) * arena_bytes;
    if (std::byte* const arena = map_arena_at(address, MAP_FIXED_NOREPLACE)) return arena;
  }
  return map_arena_at(0, 0);
}

}  // namespace

SimMemory::SimMemory() : arena_(map_arena()) {}

SimMemory::~SimMemory() {
  if (arena_ != nullptr) munmap(arena_, arena_bytes);
}

std::span<std::byte> SimMemory::allocate(std::size_t bytes) {
  if (arena_ == nullptr || bytes > arena_bytes - used_bytes_) return {};
  std::byte* const begin = arena_ + used_bytes_;
  used_bytes_ = std::min<std::size_t>(round_up(used_bytes_ + bytes, allocation_alignment), arena_bytes);
  return {begin, bytes};
}

void SimMemory::forbid(Rank rank, std::uint64_t address, std::size_t bytes) {
  holes_.push_back({.rank = rank, .begin = address, .end = address + bytes});
}

bool SimMemory::is_forbidden(Rank rank, std::uint64_t address, std::size_t bytes) const {
  return std::any_of(holes_.begin(), holes_.end(), [&](const Hole& hole) {
    return hole.rank == rank && address < hole.end && hole.begin < address + bytes;
  });
}

}  // namespace farsum
