// The heap of the node segment: extents, those that several ranks are about to share, and the marks of memory that only
// CPU atomics may touch.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/memory_room.hpp"
#include "os/process.hpp"
#include "transport/shm/node_header.hpp"
#include "transport/shm/touched_file.hpp"

namespace farsum {

namespace {

bool is_gone(NodeSegment& segment, std::uint32_t holder) {
  // Relaxed: written before the rank could take a lock.
  const std::int32_t pid = segment.rank(holder - 1).pid.load(std::memory_order_relaxed);
  return pid != 0 && pid != getpid() && os::process_has_ended(pid);
}

}  // namespace

// Holds the heap's lock. The lock of a holder that died is taken over so that the others can end in order, but what it
// guards may be half changed, and is left alone from then on.
class NodeSegment::HeapGuard {
 public:
  HeapGuard(NodeSegment& segment, std::uint32_t me) : header_(segment.header()) {
    StripeLock& lock = header_.heap_lock;
    while (!lock.acquire(me, [&segment](std::uint32_t holder) { return is_gone(segment, holder); })) {
      const std::uint32_t holder = lock.holder();
      if (holder == 0 || !is_gone(segment, holder) || !lock.break_dead(holder, me)) continue;
      // Relaxed: the lock orders it.
      header_.heap_broken_by.store(holder, std::memory_order_relaxed);
      return;
    }
  }
  ~HeapGuard() { header_.heap_lock.release(); }
  HeapGuard(const HeapGuard&) = delete;
  HeapGuard& operator=(const HeapGuard&) = delete;
  bool usable() const { return header_.heap_broken_by.load(std::memory_order_relaxed) == 0; }
  Status refusal() const {
    return {Code::peer_failed, fmt::format("rank {} of the job died while it changed the node's heap of shared memory",
                                           header_.heap_broken_by.load(std::memory_order_relaxed) - 1)};
  }

 private:
  NodeHeader& header_;
};

StripeLock& NodeSegment::heap_lock() { return header().heap_lock; }

NodeSegment::Room NodeSegment::room() {
  const os::MemoryRoom room = os::available({.root = "/", .count_address_space = false});
  struct stat status {};
  const std::uint64_t resident = fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
  // Kept pages are nobody's, and go to the system before somebody is refused.
  const std::uint64_t kept = kept_bytes();
  const std::uint64_t touched = resident > kept ? resident - kept : 0;
  // What was promised and not yet touched is still in the system's count of free memory.
  const std::uint64_t promised = allocated_bytes();
  const std::uint64_t owed = promised > touched ? promised - touched : 0;
  const std::uint64_t free = room.bytes + kept;
  return {free > owed ? free - owed : 0, fmt::format("{} ({})", os::name_of(room.bound), room.where)};
}

std::uint64_t NodeSegment::allocated_bytes() const { return header().allocated_bytes.load(std::memory_order_relaxed); }
std::uint64_t NodeSegment::kept_bytes() const { return header().kept.bytes(); }

Status NodeSegment::look_for_room(std::uint64_t bytes, std::uint32_t me) {
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

HeapExtent NodeSegment::cut(std::uint64_t bytes, const Alignment& alignment) {
  NodeHeader& shared = header();
  for (std::uint32_t i = 0; i < shared.free_count; ++i) {
    const HeapExtent whole = shared.free_extents[i];
    const std::uint64_t gap = (alignment.past - whole.offset) & (alignment.bytes - 1);
    const std::uint64_t start = whole.offset + gap;
    if (whole.bytes < gap + bytes || (gap != 0 && shared.free_count == most_free_extents)) continue;
    const HeapExtent rest{start + bytes, whole.bytes - gap - bytes};
    HeapExtent* const here = &shared.free_extents[i];
    HeapExtent* const end = &shared.free_extents[shared.free_count];
    if (gap != 0 && rest.bytes != 0) {
      std::copy_backward(here + 1, end, end + 1);
      ++shared.free_count;
      here[0] = {whole.offset, gap};
      here[1] = rest;
    } else if (gap != 0 || rest.bytes != 0) {
      *here = gap != 0 ? HeapExtent{whole.offset, gap} : rest;
    } else {
      std::copy(here + 1, end, here);
      --shared.free_count;
    }
    shared.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return {start, bytes};
  }
  return {};
}

Result<HeapExtent> NodeSegment::allocate(Use use, std::uint64_t bytes, std::uint64_t held_bytes,
                                         std::span<const Alignment> alignments, std::uint32_t me) {
  if (bytes > bytes_) {
    return Status(
        Code::no_memory,
        fmt::format("asked for {} bytes of shared memory, but the node's segment has {} bytes in all", bytes, bytes_));
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
  if (kept.bytes != 0) {
    header().allocated_bytes.fetch_add(kept.bytes, std::memory_order_relaxed);
    return kept;
  }
  do {
    const HeapGuard guard(*this, me);
    if (!guard.usable()) return guard.refusal();
    for (const Alignment& alignment : alignments) {
      if (const HeapExtent extent = cut(wanted, alignment); extent.bytes != 0) return extent;
    }
    // What waits for its length stands in the way of others.
  } while (give_oldest_kept_to_system(me));
  return Status(Code::no_memory,
                fmt::format("asked for {} bytes of shared memory, but the node's segment of {} bytes has no such "
                            "stretch left (FARSUM_SEGMENT_BYTES sets its size)",
                            wanted, bytes_));
}

// Large extents start on a stripe's boundary, so that what is aligned inside them is aligned to the stripes of the
// node's table.
Result<HeapExtent> NodeSegment::allocate(std::uint64_t bytes, std::uint32_t me) {
  const std::uint64_t pages = round_up(bytes, page_bytes);
  const Alignment alignment{pages >= aligned_from_bytes ? aligned_from_bytes : page_bytes, 0};
  return allocate(Use::by_windows, bytes, 0, {&alignment, 1}, me);
}

Result<HeapExtent> NodeSegment::allocate_for(std::uintptr_t address, std::uint64_t bytes, std::uint64_t held_bytes,
                                             std::uint32_t me) {
  static constexpr Alignment any{page_bytes, 0};
  if (bytes < huge_page_bytes) return allocate(Use::by_promotions, bytes, held_bytes, {&any, 1}, me);
  const Alignment alignments[] = {{huge_page_bytes, address % huge_page_bytes}, any};
  return allocate(Use::by_promotions, bytes, held_bytes, alignments, me);
}

void NodeSegment::punch(HeapExtent extent) const {
  // Free memory reads as zeros. If the system refuses the hole the zeros are written.
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
                static_cast<off_t>(extent.bytes)) == 0)
    return;
  static constexpr std::array<std::byte, 4 * page_bytes> zeros{};
  for (std::uint64_t done = 0; done < extent.bytes;) {
    const ssize_t written = pwrite(fd_, zeros.data(), std::min<std::uint64_t>(zeros.size(), extent.bytes - done),
                                   static_cast<off_t>(extent.offset + done));
    if (written <= 0) return;
    done += static_cast<std::uint64_t>(written);
  }
}

void NodeSegment::release(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  const bool is_short = extent.bytes <= keep_pages_bytes && is_reached(extent);
  if (!is_short && keep(extent, me)) return;
  if (!is_short) return discard(extent, me);
  std::memset(base_ + extent.offset, 0, extent.bytes);
  give_back(extent, me);
}

void NodeSegment::discard(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  punch(extent);
  give_back(extent, me);
}

// Gives back what reads as zeros.
void NodeSegment::give_back(HeapExtent extent, std::uint32_t me) {
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return;
  header().allocated_bytes.fetch_sub(extent.bytes, std::memory_order_relaxed);
  join_free(extent);
}

// Whether it waits, pages and all, for the next of its length. Zeroing pages costs a tenth of faulting new ones in.
bool NodeSegment::keep(HeapExtent extent, std::uint32_t me) {
  KeptExtents& kept = header().kept;
  if (!is_reached(extent)) return false;
  const std::optional<std::uint64_t> resident =
      zero_what_was_touched(fd_, extent.offset, extent.bytes, base_ + extent.offset, kept.most_bytes());
  if (!resident) return false;
  do {
    const HeapGuard guard(*this, me);
    if (!guard.usable()) return false;
    if (!kept.add({extent, *resident})) continue;
    header().allocated_bytes.fetch_sub(extent.bytes, std::memory_order_relaxed);
    return true;
  } while (give_oldest_kept_to_system(me));
  return false;
}

// 0 bytes where none waits. It is counted as allocated by who called.
HeapExtent NodeSegment::take_kept(std::uint64_t bytes, const Alignment& alignment, std::uint32_t me) {
  if (alignment.past != 0) return {};
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return {};
  const std::optional<KeptExtents::Kept> found = header().kept.take(bytes, alignment.bytes);
  return found ? found->extent : HeapExtent{};
}

// False where none waits.
bool NodeSegment::give_oldest_kept_to_system(std::uint32_t me) {
  std::optional<KeptExtents::Kept> oldest;
  {
    const HeapGuard guard(*this, me);
    if (!guard.usable()) return false;
    oldest = header().kept.take_oldest();
  }
  if (oldest) give_to_system(oldest->extent, me);
  return oldest.has_value();
}

// Gives an extent that waited to the system. Its pages go without the lock, which others need meanwhile.
void NodeSegment::give_to_system(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  punch(extent);
  const HeapGuard guard(*this, me);
  if (guard.usable()) join_free(extent);
}

// Called under the heap's lock.
void NodeSegment::join_free(HeapExtent extent) {
  NodeHeader& shared = header();
  HeapExtent* const begin = shared.free_extents;
  HeapExtent* const end = begin + shared.free_count;
  HeapExtent* after = std::upper_bound(
      begin, end, extent.offset, [](std::uint64_t offset, const HeapExtent& other) { return offset < other.offset; });
  const bool joins_before = after != begin && (after - 1)->offset + (after - 1)->bytes == extent.offset;
  const bool joins_after = after != end && extent.offset + extent.bytes == after->offset;
  if (joins_before) {
    (after - 1)->bytes += extent.bytes;
    if (joins_after) {
      (after - 1)->bytes += after->bytes;
      std::copy(after + 1, end, after);
      --shared.free_count;
    }
  } else if (joins_after) {
    after->offset = extent.offset;
    after->bytes += extent.bytes;
  } else if (shared.free_count < most_free_extents) {
    std::copy_backward(after, end, end + 1);
    *after = extent;
    ++shared.free_count;
  }
  // A full table loses the stretch of address space, not memory: its pages are zero or gone.
}

// What is free cannot be allocated meanwhile, so no thread is about to use it.
void NodeSegment::leave_free_memory(std::uint32_t me, bool more_follows) {
  if (more_follows) map_->map_exactly();
  const NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return;
  for (std::uint32_t i = 0; i < shared.free_count; ++i)
    map_->leave(shared.free_extents[i].offset, shared.free_extents[i].bytes);
  for (const KeptExtents::Kept& kept : shared.kept.all()) map_->leave(kept.extent.offset, kept.extent.bytes);
}

bool NodeSegment::is_allocated(HeapExtent extent, std::uint32_t me) {
  const NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return false;
  const std::span<const HeapExtent> free(shared.free_extents, shared.free_count);
  // The last that begins before the end: no other reaches into it that does not overlap with that one.
  const auto after = std::lower_bound(free.begin(), free.end(), extent.offset + extent.bytes,
                                      [](const HeapExtent& other, std::uint64_t end) { return other.offset < end; });
  const bool is_free = after != free.begin() && std::prev(after)->offset + std::prev(after)->bytes > extent.offset;
  const std::span<const KeptExtents::Kept> kept = shared.kept.all();
  return !is_free && std::none_of(kept.begin(), kept.end(), [&extent](const KeptExtents::Kept& waiting) {
    return waiting.extent.offset < extent.offset + extent.bytes &&
           extent.offset < waiting.extent.offset + waiting.extent.bytes;
  });
}

Result<HeapExtent> NodeSegment::meet(const MeetingKey& key, std::uint32_t expected, std::uint64_t bytes,
                                     std::uint32_t me) {
  HeapExtent spare;
  bool has_no_room = false;
  const auto join = [&]() -> std::optional<HeapExtent> {
    const HeapGuard guard(*this, me);
    if (!guard.usable()) return HeapExtent{};
    PendingExtent* vacant = nullptr;
    for (PendingExtent& pending : header().pending_extents) {
      if (pending.expected == 0) {
        vacant = vacant == nullptr ? &pending : vacant;
        continue;
      }
      if (pending.key[0] != key.words[0] || pending.key[1] != key.words[1] || pending.expected != expected) continue;
      if (++pending.arrived == pending.expected) pending.expected = 0;
      return pending.extent;
    }
    if (vacant == nullptr) return HeapExtent{};
    if (spare.bytes == 0 && !has_no_room) return std::nullopt;
    *vacant = {{key.words[0], key.words[1]}, expected == 1 ? 0 : expected, 1, spare};
    return std::exchange(spare, {});
  };
  std::optional<HeapExtent> extent = join();
  if (!extent) {
    Result<HeapExtent> made = allocate(bytes, me);
    if (made.is_ok()) spare = made.value();
    // Then the others are told by a meeting that has no extent.
    has_no_room = !made.is_ok();
    extent = join();
    if (!has_no_room) release(spare, me);  // somebody else was quicker
    if (has_no_room && extent->bytes == 0) return made;
  }
  if (extent->bytes == 0)
    return Status(Code::no_memory, "the node has no room for a group, or too many are being made at once there");
  return *extent;
}

bool NodeSegment::mark_atomics_only(HeapExtent extent, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable() || shared.atomics_only_count == most_atomics_only_extents) return false;
  shared.atomics_only_extents[shared.atomics_only_count++] = extent;
  return true;
}

void NodeSegment::unmark_atomics_only(HeapExtent extent, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return;
  for (std::uint32_t i = 0; i < shared.atomics_only_count; ++i) {
    if (shared.atomics_only_extents[i].offset != extent.offset) continue;
    shared.atomics_only_extents[i] = shared.atomics_only_extents[--shared.atomics_only_count];
    return;
  }
}

HeapExtent NodeSegment::first_atomics_only(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  HeapExtent first{offset + bytes, 0};
  for (std::uint32_t i = 0; i < shared.atomics_only_count; ++i) {
    const HeapExtent& extent = shared.atomics_only_extents[i];
    const std::uint64_t from = std::max(extent.offset, offset);
    const std::uint64_t to = std::min(extent.offset + extent.bytes, offset + bytes);
    if (from < to && from < first.offset) first = {from, to - from};
  }
  return first;
}

}  // namespace farsum
