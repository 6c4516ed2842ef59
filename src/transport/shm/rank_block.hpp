// What the node segment keeps of one rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "lockfree/awaited_rank.hpp"
#include "lockfree/doorbell.hpp"
#include "lockfree/lock_free_permit.hpp"
#include "lockfree/stripe_lock.hpp"
#include "os/event_count.hpp"
#include "os/usable_processors.hpp"

namespace farsum {

// The stripes for memory in the segment: it takes 128 MiB before two stripes share a lock.
inline constexpr std::uint32_t node_stripes = 8192;
inline constexpr std::uint32_t rank_stripes = 1024;  // for a rank's adopted memory
inline constexpr std::uint32_t most_node_ranks = 1024;

// Processors fetch lines in pairs: what one writes often is not beside what others look at.
inline constexpr std::size_t line_pair_bytes = 2 * cache_line_bytes;

struct alignas(line_pair_bytes) RankBlock {
  // Written by the rank when it joins; `left` when it has left.
  std::atomic<std::uint32_t> left;
  std::atomic<std::int32_t> pid;
  // The address of a word in the rank's private memory that holds `nonce`, to tell it from a stranger.
  std::atomic<std::uint64_t> nonce_address;
  std::atomic<std::uint64_t> nonce;
  os::ProcessorBounds processors;
  // Written by the rank while it frees a window.
  AwaitedRank awaited;
  // Rung by whoever has posted a request for this rank; its agent sleeps on it.
  alignas(line_pair_bytes) Doorbell doorbell;
  // Threads of this rank that wait for anything.
  alignas(cache_line_bytes) EventCount waiters;
  // The permit for single elements in lock-free stripes, of one thread of this rank.
  alignas(line_pair_bytes) LockFreePermit permit;
  // Guard this rank's adopted memory.
  alignas(line_pair_bytes) StripeLock stripes[rank_stripes];
};
static_assert(sizeof(RankBlock) % line_pair_bytes == 0, "so that each rank's block begins with a pair of lines");
static_assert(offsetof(RankBlock, permit) / line_pair_bytes != offsetof(RankBlock, waiters) / line_pair_bytes);
static_assert(offsetof(RankBlock, permit) / line_pair_bytes != offsetof(RankBlock, stripes) / line_pair_bytes);

}  // namespace farsum
