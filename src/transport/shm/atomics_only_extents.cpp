#include "transport/shm/atomics_only_extents.hpp"

#include <algorithm>

namespace farsum {

bool AtomicsOnlyExtents::mark(HeapExtent extent, std::uint32_t me) {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable() || count_ == table_.size()) return false;
  table_[count_++] = extent;
  return true;
}

void AtomicsOnlyExtents::unmark(HeapExtent extent, std::uint32_t me) {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable()) return;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (table_[i].offset != extent.offset) continue;
    table_[i] = table_[--count_];
    return;
  }
}

HeapExtent AtomicsOnlyExtents::first_in(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me) const {
  const HeapLock::Guard guard(lock_, me);
  HeapExtent first{offset + bytes, 0};
  for (const HeapExtent& extent : table_.first(count_)) {
    const std::uint64_t from = std::max(extent.offset, offset);
    const std::uint64_t to = std::min(extent.offset + extent.bytes, offset + bytes);
    if (from < to && from < first.offset) first = {from, to - from};
  }
  return first;
}

}  // namespace farsum
