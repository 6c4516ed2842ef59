#include "transport/shm/node_heap.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "os/memory_room.hpp"
#include "transport/shm/touched_file.hpp"

namespace farsum {
namespace {

// Extents up to this are zeroed as a whole when they are given back, and keep their pages in the free stretch that they
// join: that costs less than a look at what was touched.
constexpr std::uint64_t keep_pages_bytes = 262144;
// The stripes of memory/atomicity.hpp, which this folder does not see.
constexpr std::uint64_t aligned_from_bytes = 16384;

}  // namespace

NodeHeap::Room NodeHeap::room() const {
  const os::MemoryRoom room = os::available({.root = "/", .count_address_space = false});
  const std::uint64_t resident = file_.resident_bytes();
  // Kept pages are nobody's, and go to the system before somebody is refused.
  const std::uint64_t kept = kept_bytes();
  const std::uint64_t touched = resident > kept ? resident - kept : 0;
  // What was promised and not yet touched is still in the system's count of free memory.
  const std::uint64_t promised = allocated_bytes();
  const std::uint64_t owed = promised > touched ? promised - touched : 0;
  const std::uint64_t free = room.bytes + kept;
  return {free > owed ? free - owed : 0, fmt::format("{} ({})", os::name_of(room.bound), room.where)};
}

Status NodeHeap::look_for_room(std::uint64_t bytes, std::uint32_t me) {
  const std::uint64_t promised = allocated_bytes();
  const std::uint64_t begin_ns = monotonic_ns();
  const Room available = room();
  // Before the node runs short of memory, what waits goes.
  if (const std::uint64_t kept = kept_bytes(); kept != 0 && bytes > available.bytes - std::min(available.bytes, kept)) {
    while (give_oldest_kept_to_system(me)) {
    }
  }
  if (bytes > available.bytes) {
    return {Code::no_memory,
            fmt::format("asked for {} bytes of shared memory, but {} bytes are available, bounded by {}", bytes,
                        available.bytes, available.bound)};
  }
  last_look_.has_found(available.bytes, promised, begin_ns);
  return {};
}

Result<HeapExtent> NodeHeap::allocate(Use use, std::uint64_t bytes, std::uint64_t held_bytes,
                                      std::span<const HeapAlignment> alignments, std::uint32_t me) {
  if (bytes > file_.bytes()) {
    return Status(Code::no_memory,
                  fmt::format("asked for {} bytes of shared memory, but the node's segment has {} bytes in all", bytes,
                              file_.bytes()));
  }
  const std::uint64_t wanted = std::max(round_up(bytes, page_bytes), page_bytes);
  const bool may_be_kept = use == Use::by_windows && wanted > keep_pages_bytes;
  const HeapExtent kept = may_be_kept ? take_kept(wanted, alignments.front(), me) : HeapExtent{};
  // What has pages already counts as touched by nobody, and so makes room for itself.
  if (wanted > keep_pages_bytes && last_look_.is_worth_repeating(wanted, allocated_bytes(), monotonic_ns())) {
    if (Status status = look_for_room(wanted - held_bytes, me); !status.is_ok()) {
      give_to_system(kept, me);
      return status;
    }
  }
  if (kept.bytes == 0) return cut(wanted, alignments, me);
  books_.allocated_bytes.fetch_add(kept.bytes, std::memory_order_relaxed);
  return kept;
}

// At the first of the alignments for which there is a stretch.
Result<HeapExtent> NodeHeap::cut(std::uint64_t bytes, std::span<const HeapAlignment> alignments, std::uint32_t me) {
  do {
    const HeapLock::Guard guard(lock_, me);
    if (!guard.usable()) return guard.refusal();
    for (const HeapAlignment& alignment : alignments) {
      const HeapExtent extent = books_.free.cut(bytes, alignment);
      if (extent.bytes == 0) continue;
      books_.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
      return extent;
    }
    // What waits for its length stands in the way of others.
  } while (give_oldest_kept_to_system(me));
  return Status(Code::no_memory,
                fmt::format("asked for {} bytes of shared memory, but the node's segment of {} bytes has no such "
                            "stretch left (FARSUM_SEGMENT_BYTES sets its size)",
                            bytes, file_.bytes()));
}

// Large extents start on a stripe's boundary, so that what is aligned inside them is aligned to the stripes of the
// node's table.
Result<HeapExtent> NodeHeap::allocate(std::uint64_t bytes, std::uint32_t me) {
  const std::uint64_t pages = round_up(bytes, page_bytes);
  const HeapAlignment alignment{pages >= aligned_from_bytes ? aligned_from_bytes : page_bytes, 0};
  return allocate(Use::by_windows, bytes, 0, {&alignment, 1}, me);
}

Result<HeapExtent> NodeHeap::allocate_for(std::uintptr_t address, std::uint64_t bytes, std::uint64_t held_bytes,
                                          std::uint32_t me) {
  static constexpr HeapAlignment any{page_bytes, 0};
  if (bytes < huge_page_bytes) return allocate(Use::by_promotions, bytes, held_bytes, {&any, 1}, me);
  const HeapAlignment alignments[] = {{huge_page_bytes, address % huge_page_bytes}, any};
  return allocate(Use::by_promotions, bytes, held_bytes, alignments, me);
}

void NodeHeap::release(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  const bool is_short = extent.bytes <= keep_pages_bytes && map_.is_reached(extent.offset, extent.bytes);
  if (!is_short && keep(extent, me)) return;
  if (!is_short) return discard(extent, me);
  std::memset(map_.begin() + extent.offset, 0, extent.bytes);
  give_back(extent, me);
}

void NodeHeap::discard(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  file_.punch(extent);
  give_back(extent, me);
}

// Gives back what reads as zeros.
void NodeHeap::give_back(HeapExtent extent, std::uint32_t me) {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable()) return;
  books_.allocated_bytes.fetch_sub(extent.bytes, std::memory_order_relaxed);
  books_.free.join(extent);
}

// Whether it waits, pages and all, for the next of its length. Zeroing pages costs a tenth of faulting new ones in.
bool NodeHeap::keep(HeapExtent extent, std::uint32_t me) {
  if (!map_.is_reached(extent.offset, extent.bytes)) return false;
  const std::optional<std::uint64_t> resident = zero_what_was_touched(
      file_.fd(), extent.offset, extent.bytes, map_.begin() + extent.offset, books_.kept.most_bytes());
  if (!resident) return false;
  do {
    const HeapLock::Guard guard(lock_, me);
    if (!guard.usable()) return false;
    if (!books_.kept.add({extent, *resident})) continue;
    books_.allocated_bytes.fetch_sub(extent.bytes, std::memory_order_relaxed);
    return true;
  } while (give_oldest_kept_to_system(me));
  return false;
}

// 0 bytes where none waits. It is counted as allocated by who called.
HeapExtent NodeHeap::take_kept(std::uint64_t bytes, const HeapAlignment& alignment, std::uint32_t me) {
  if (alignment.past != 0) return {};
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable()) return {};
  const std::optional<KeptExtents::Kept> found = books_.kept.take(bytes, alignment.bytes);
  return found ? found->extent : HeapExtent{};
}

// False where none waits.
bool NodeHeap::give_oldest_kept_to_system(std::uint32_t me) {
  std::optional<KeptExtents::Kept> oldest;
  {
    const HeapLock::Guard guard(lock_, me);
    if (!guard.usable()) return false;
    oldest = books_.kept.take_oldest();
  }
  if (oldest) give_to_system(oldest->extent, me);
  return oldest.has_value();
}

// Gives an extent that waited to the system. Its pages go without the lock, which others need meanwhile.
void NodeHeap::give_to_system(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  file_.punch(extent);
  const HeapLock::Guard guard(lock_, me);
  if (guard.usable()) books_.free.join(extent);
}

// What is free cannot be allocated meanwhile, so no thread is about to use it.
void NodeHeap::leave_free_memory(std::uint32_t me) {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable()) return;
  for (const HeapExtent& free : books_.free.all()) map_.leave(free.offset, free.bytes);
  for (const KeptExtents::Kept& kept : books_.kept.all()) map_.leave(kept.extent.offset, kept.extent.bytes);
}

bool NodeHeap::is_allocated(HeapExtent extent, std::uint32_t me) const {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable() || books_.free.overlap(extent)) return false;
  const std::span<const KeptExtents::Kept> kept = books_.kept.all();
  return std::none_of(kept.begin(), kept.end(), [&extent](const KeptExtents::Kept& waiting) {
    return waiting.extent.offset < extent.offset + extent.bytes &&
           extent.offset < waiting.extent.offset + waiting.extent.bytes;
  });
}

}  // namespace farsum
