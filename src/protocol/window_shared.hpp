// What the ranks of one node keep of a window in shared memory: per rank its locks, its notifications, its post and
// complete counters and its table of regions. One block per window; pages that nobody touches cost nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "lockfree/lock_bias.hpp"
#include "lockfree/shared_lock.hpp"
#include "lockfree/stripe_lock.hpp"
#include "memory/atomicity.hpp"

namespace farsum {

// A stretch of a rank's exposed memory, as its owner describes it to the others.
struct SharedRegion {
  std::uint64_t offset;  // in the window; an address in a dynamic one
  std::uint64_t bytes;
  std::uint64_t owner_address;
  std::uint64_t segment_offset;  // where it lies in the node segment; not_in_segment otherwise
  std::uint32_t flags;
  std::uint32_t reserved;
  char note[112];  // why it is not mapped
};

inline constexpr std::uint64_t not_in_segment = ~std::uint64_t{0};
inline constexpr std::uint32_t region_read_only = 1u << 0;
inline constexpr std::uint32_t region_promoted = 1u << 1;
inline constexpr std::uint32_t region_atomics_only = 1u << 2;
inline constexpr std::uint32_t region_segment_key = 1u << 3;  // its stripes are the node's, keyed by segment offset
inline constexpr std::uint32_t region_unsure = 1u << 4;  // not all of it need be mapped: only the kernel touches it
inline constexpr std::uint32_t region_mixed_locks = 1u << 5;  // not all of it is under the same locks

// Fixed head of a rank's part; locks, counters and regions follow it at offsets that WindowSharedShape computes.
struct RankWindowHead {
  // Written by the owner, under table_lock, at every change. Readers of a dynamic window that see another number than
  // before read the table, under the lock too; any other window's stays as it was when the ranks met.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> table_version;
  StripeLock table_lock;
  std::uint32_t region_count;
  // Where a table that outgrew its place lies, from the head on; 0 while it lies at regions_at(). Written and read as
  // the table itself is.
  std::int64_t moved_table;
  // Written by origins that complete an access epoch here.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> completes;
  // Written by origins when they close the window, as what their operations were worth to be on mapped memory. Relaxed:
  // the ranks meet before the owner reads it.
  std::atomic<std::uint64_t> worth_ns;
};

// Where the pieces of a rank's part lie. The same on every rank of the window.
struct WindowSharedShape {
  std::uint32_t ranks = 0;
  std::uint32_t notification_slots = 0;
  std::uint32_t most_regions = 0;  // before the table moves
  std::uint32_t locks = 1;         // the first is the window's own; of mutexes there are more

  std::uint64_t lock_at(std::uint32_t index) const {
    const std::uint64_t bytes = round_up(SharedLockState::footprint(ranks), alignof(SharedLockState));
    return round_up(sizeof(RankWindowHead), alignof(SharedLockState)) + index * bytes;
  }
  std::uint64_t notifications_at() const { return lock_at(locks); }
  std::uint64_t posts_at() const {
    return round_up(notifications_at() + notification_slots * sizeof(std::uint64_t), cache_line_bytes);
  }
  std::uint64_t regions_at() const { return round_up(posts_at() + ranks * sizeof(std::uint32_t), cache_line_bytes); }
  std::uint64_t rank_bytes() const {
    return round_up(regions_at() + most_regions * sizeof(SharedRegion), alignof(SharedLockState));
  }
};

// A lock's holders are ranks plus one; a dead one is what everybody waits for in vain.
struct HolderDead {
  const Liveness* liveness = nullptr;
  bool operator()(std::uint32_t id) const { return liveness != nullptr && liveness->is_dead(id - 1); }
};

// A rank's part of the block at `base`, a multiple of 128.
class RankWindow {
 public:
  // A rank of another node has none: there is no memory that both see.
  RankWindow() = default;
  // `bias` is that of the window's own locks, the same on all its ranks.
  RankWindow(std::byte* base, const WindowSharedShape& shape, LockBias bias = {})
      : base_(base), shape_(shape), bias_(bias) {}

  bool is_here() const { return base_ != nullptr; }

  RankWindowHead& head() const { return *reinterpret_cast<RankWindowHead*>(base_); }
  std::uint32_t locks() const { return shape_.locks; }
  SharedLockState& lock(std::uint32_t index = 0) const {
    return *reinterpret_cast<SharedLockState*>(base_ + shape_.lock_at(index));
  }
  SharedLock<HolderDead> lock_view(const Liveness* liveness, std::uint32_t index = 0) const {
    return {lock(index), shape_.ranks, HolderDead{liveness}, index == 0 ? bias_ : LockBias()};
  }
  const LockBias& bias() const { return bias_; }
  // Called by the owner before the ranks meet: where there is a bias, all may be held by it.
  void begin_bias() const {
    if (!bias_.exists()) return;
    LockBias(bias_).begin();
    (void)LockQueue(lock().queue, lock().slots(), shape_.ranks).allow_bias();
  }
  std::atomic<std::uint64_t>* notifications() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + shape_.notifications_at());
  }
  // posts()[k]: how often rank k has posted to this rank.
  std::atomic<std::uint32_t>* posts() const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + shape_.posts_at());
  }
  SharedRegion* regions() const {
    const std::int64_t moved = head().moved_table;
    return reinterpret_cast<SharedRegion*>(base_ +
                                           (moved != 0 ? moved : static_cast<std::int64_t>(shape_.regions_at())));
  }

 private:
  std::byte* base_ = nullptr;
  WindowSharedShape shape_;
  LockBias bias_;
};

}  // namespace farsum
