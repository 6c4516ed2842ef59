// The head of the node segment, as its own files see it, and the test that pins layouts; nobody else includes this.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"
#include "lockfree/stripe_lock.hpp"
#include "transport/shm/kept_extents.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

inline constexpr std::uint64_t segment_magic = 0x4641'5253'554d'0005;  // "FARSUM", layout 5
inline constexpr std::uint32_t most_free_extents = 16384;
// Extents up to this are zeroed as a whole when they are given back, and keep their pages in the free stretch that they
// join: that costs less than a look at what was touched.
inline constexpr std::uint64_t keep_pages_bytes = 262144;
// So many bytes of the pages of longer ones may wait for the next extent of that length, and no more than a share of
// the room that the node had when the segment was made.
inline constexpr std::uint64_t most_kept_bytes = std::uint64_t{192} << 20;
inline constexpr std::uint64_t kept_share_of_room = 32;

// The stripes of memory/atomicity.hpp, which this folder does not see.
inline constexpr std::uint64_t aligned_from_bytes = 16384;
inline constexpr std::uint32_t most_atomics_only_extents = 1024;
inline constexpr std::uint32_t most_pending_extents = 256;

// An extent that several ranks are about to share. Free when expected is 0.
struct PendingExtent {
  std::uint64_t key[2];
  std::uint32_t expected;
  std::uint32_t arrived;
  HeapExtent extent;
};

struct NodeHeader {
  // Written once by whoever initialises.
  std::uint64_t magic;
  std::uint64_t segment_bytes;
  std::uint32_t ranks;
  std::uint64_t rank_blocks;
  std::uint64_t channels;
  std::uint64_t heap_begin;
  std::uint64_t wake_tag;

  std::atomic<std::uint32_t> failed_rank;
  std::atomic<std::uint32_t> next_window_id;
  std::uint64_t world_team;
  // Ranks that have left this context; read through the file by who waits for a next one.
  std::atomic<std::uint32_t> left;
  // 1 when a rank left with memory of its program still in the file. Written under the file's lock.
  std::atomic<std::uint32_t> keeps_memory;
  // rank + 1 of one that died while it changed the heap, which nobody may use any more. Written under heap_lock.
  std::atomic<std::uint32_t> heap_broken_by;

  // Guards what follows. A rank that dies inside ends the job; nobody repairs the heap.
  alignas(cache_line_bytes) StripeLock heap_lock;
  std::atomic<std::uint64_t> allocated_bytes;  // read without the lock, for room(): relaxed
  std::uint32_t free_count;
  HeapExtent free_extents[most_free_extents];  // sorted by offset, none touching another
  KeptExtents kept;                            // free as well, but for one length
  std::uint32_t atomics_only_count;
  HeapExtent atomics_only_extents[most_atomics_only_extents];
  PendingExtent pending_extents[most_pending_extents];

  alignas(cache_line_bytes) StripeLock stripes[node_stripes];
};

}  // namespace farsum
