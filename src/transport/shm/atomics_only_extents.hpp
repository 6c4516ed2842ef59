// The marks of memory in the node segment that only CPU atomics may touch.
#pragma once

#include <cstdint>
#include <span>

#include "transport/shm/heap_extent.hpp"
#include "transport/shm/heap_lock.hpp"

namespace farsum {

// In a table of the segment, which the heap's lock guards. Any thread may call; `me` is rank + 1.
class AtomicsOnlyExtents {
 public:
  AtomicsOnlyExtents(HeapLock& lock, std::uint32_t& count, std::span<HeapExtent> table)
      : lock_(lock), count_(count), table_(table) {}

  // False when there is no room for the mark.
  bool mark(HeapExtent extent, std::uint32_t me);
  void unmark(HeapExtent extent, std::uint32_t me);
  // The first such memory in [offset, offset + bytes), cut to that; 0 bytes when there is none.
  HeapExtent first_in(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me) const;

 private:
  HeapLock& lock_;
  std::uint32_t& count_;
  const std::span<HeapExtent> table_;
};

}  // namespace farsum
