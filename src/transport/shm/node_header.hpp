// The head of the node segment, as its own files see it, and the test that pins layouts; nobody else includes this.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"
#include "lockfree/stripe_lock.hpp"
#include "transport/shm/extent_meetings.hpp"
#include "transport/shm/heap_extent.hpp"
#include "transport/shm/kept_extents.hpp"
#include "transport/shm/rank_block.hpp"

namespace farsum {

inline constexpr std::uint64_t segment_magic = 0x4641'5253'554d'0005;  // "FARSUM", layout 5
inline constexpr std::uint32_t most_free_extents = 16384;
inline constexpr std::uint32_t most_atomics_only_extents = 1024;
inline constexpr std::uint32_t most_pending_extents = 256;

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
