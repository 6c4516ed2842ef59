// The table of the heap's free stretches, wherever it lies: cutting from it and joining to it. The heap's lock guards
// it; it knows nothing of pages.
#pragma once

#include <cstdint>
#include <span>

#include "transport/shm/heap_extent.hpp"

namespace farsum {

class FreeExtents {
 public:
  // The first `count` of the table are free: sorted by offset, none touching another.
  FreeExtents(std::uint32_t& count, std::span<HeapExtent> table) : count_(count), table_(table) {}

  std::span<const HeapExtent> all() const { return table_.first(count_); }
  // Takes the first stretch that has room; 0 bytes where none has.
  HeapExtent cut(std::uint64_t bytes, const HeapAlignment& alignment);
  // Makes it free. A full table loses the stretch of address space, not memory: its pages are zero or gone.
  void join(HeapExtent extent);
  // Whether any of it is free.
  bool overlap(HeapExtent extent) const;

 private:
  std::uint32_t& count_;
  const std::span<HeapExtent> table_;
};

}  // namespace farsum
