// Memory for simulated ranks at addresses that do not change from run to run: code under test that looks at addresses
// (to pick a stripe, to split at a page) then decides the same way when a seed is replayed. Owned by one world; gives
// nothing back before its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace farsum {

class SimMemory {
 public:
  SimMemory();
  ~SimMemory();
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  // Zeroed bytes, aligned to a cache line. Empty when the arena (64 GiB of address space) is used up or could not be
  // had.
  std::span<std::byte> allocate(std::size_t bytes);

  // Marks a stretch of a rank's memory as gone: transfers that touch it end in Transfer::bad_address. Any other address
  // is taken to be good, as the memory of a real process mostly is; a wild one would stop the simulator itself.
  void forbid(Rank rank, std::uint64_t address, std::size_t bytes);
  bool is_forbidden(Rank rank, std::uint64_t address, std::size_t bytes) const;

 private:
  struct Hole {
    Rank rank;
    std::uint64_t begin;
    std::uint64_t end;
  };

  std::byte* arena_ = nullptr;
  std::size_t used_bytes_ = 0;
  std::vector<Hole> holes_;
};

}  // namespace farsum
