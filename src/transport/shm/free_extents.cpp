#include "transport/shm/free_extents.hpp"

#include <algorithm>
#include <iterator>

namespace farsum {

HeapExtent FreeExtents::cut(std::uint64_t bytes, const HeapAlignment& alignment) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const HeapExtent whole = table_[i];
    const std::uint64_t gap = (alignment.past - whole.offset) & (alignment.bytes - 1);
    const std::uint64_t start = whole.offset + gap;
    if (whole.bytes < gap + bytes || (gap != 0 && count_ == table_.size())) continue;
    const HeapExtent rest{start + bytes, whole.bytes - gap - bytes};
    HeapExtent* const here = &table_[i];
    HeapExtent* const end = table_.data() + count_;
    if (gap != 0 && rest.bytes != 0) {
      std::copy_backward(here + 1, end, end + 1);
      ++count_;
      here[0] = {whole.offset, gap};
      here[1] = rest;
    } else if (gap != 0 || rest.bytes != 0) {
      *here = gap != 0 ? HeapExtent{whole.offset, gap} : rest;
    } else {
      std::copy(here + 1, end, here);
      --count_;
    }
    return {start, bytes};
  }
  return {};
}

void FreeExtents::join(HeapExtent extent) {
  HeapExtent* const begin = table_.data();
  HeapExtent* const end = begin + count_;
  HeapExtent* after = std::upper_bound(
      begin, end, extent.offset, [](std::uint64_t offset, const HeapExtent& other) { return offset < other.offset; });
  const bool joins_before = after != begin && (after - 1)->offset + (after - 1)->bytes == extent.offset;
  const bool joins_after = after != end && extent.offset + extent.bytes == after->offset;
  if (joins_before) {
    (after - 1)->bytes += extent.bytes;
    if (joins_after) {
      (after - 1)->bytes += after->bytes;
      std::copy(after + 1, end, after);
      --count_;
    }
  } else if (joins_after) {
    after->offset = extent.offset;
    after->bytes += extent.bytes;
  } else if (count_ < table_.size()) {
    std::copy_backward(after, end, end + 1);
    *after = extent;
    ++count_;
  }
}

bool FreeExtents::overlap(HeapExtent extent) const {
  const std::span<const HeapExtent> free = all();
  // The last that begins before the end: no other reaches into it that does not overlap with that one.
  const auto after = std::lower_bound(free.begin(), free.end(), extent.offset + extent.bytes,
                                      [](const HeapExtent& other, std::uint64_t end) { return other.offset < end; });
  return after != free.begin() && std::prev(after)->offset + std::prev(after)->bytes > extent.offset;
}

}  // namespace farsum
