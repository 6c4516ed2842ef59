// The atomicity domain: who may execute atomics on which memory, and under which lock.
//
// The domain belongs to memory, not to windows, so windows that overlap agree:
//  - Memory in the node segment, wherever it is mapped, is guarded by the node's stripe table, keyed by offset in the
//    segment.
//  - Other (adopted) memory is guarded by its owner's stripe table, keyed by address in the owner.
//  - Memory whose windows promise single lockable elements is *atomics only*: updated by CPU atomics, without locks.
//  The promise is kept
//    with the memory (its extent in the segment); adopted memory outside the segment is never so, because copies by
//    the kernel are not CPU atomics.
// Every executor on this node (caller, agent, owner) goes through apply.hpp or hot_window.hpp with this domain, so no
// two that are not atomic to each other touch the same element. A network card's atomics are a third executor: memory
// they may touch belongs to windows that are declared for the card alone, local ranks included (tests/sim shows what
// happens otherwise).
//
// An element is guarded by the stripes of all its bytes: one, or two where it straddles their boundary, as elements at
// any address may. A thread holds one stripe at a time, two for such an element, and all of a region with
// caller-computes' lock of the region; what it holds together it takes in ascending table order.
//
// A stripe in which thousands of single elements of lockable types were updated by callers on mapped memory is
// lock-free: from there on those are updated by CPU atomics without the lock, and that is revoked before anything else
// is done to it (lockfree/lock_free_permit.hpp). So of two executors that are not atomic to each other one still keeps
// the other out. A bulk update, and one of rows, pieces or scattered elements, revokes the lock-free stripes ahead of
// it together; caller-computes revokes one after the other. Where a rank of the node has no membarrier, no stripe is
// lock-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "lockfree/stripe_lock.hpp"

namespace farsum {

// 16 KiB: the lock is then at most a tenth of the time of a bulk sum, and a holder keeps it for under a microsecond.
inline constexpr unsigned stripe_shift = 14;
inline constexpr std::uint64_t stripe_bytes = std::uint64_t{1} << stripe_shift;

struct AtomicDomain {
  StripeLock* locks = nullptr;
  std::uint64_t key_base = 0;  // key of the region's first byte
  std::uint32_t mask = 0;      // number of locks - 1; a power of two less one
  bool atomics_only = false;

  StripeLock& lock_of(std::uint64_t offset) const { return locks[stripe_of(offset) & mask]; }
  std::uint64_t stripe_of(std::uint64_t offset) const { return (key_base + offset) >> stripe_shift; }
  // From `offset` to where the next stripe starts.
  std::uint64_t bytes_left_in_stripe(std::uint64_t offset) const {
    return stripe_bytes - ((key_base + offset) & (stripe_bytes - 1));
  }
  // Bytes of whole elements from `offset` that are updated together: what lies in the stripe of `offset`, or the one
  // element that straddles its end. At most `bytes`.
  std::uint64_t run_bytes(std::uint64_t offset, std::uint64_t bytes, std::uint64_t element_bytes) const {
    const std::uint64_t left = bytes_left_in_stripe(offset);
    if (bytes <= left) return bytes;
    return left < element_bytes ? element_bytes : left / element_bytes * element_bytes;
  }
  // The lock of the stripe behind that of `offset`.
  StripeLock& next_lock_of(std::uint64_t offset) const { return locks[(stripe_of(offset) + 1) & mask]; }
};

// Tells whether the rank that holds a lock is dead. Ranks of the job; lock words hold rank + 1.
class Liveness {
 public:
  virtual ~Liveness() = default;
  virtual bool is_dead(std::uint32_t rank) const = 0;
  // Records that `rank` is dead and tells all who wait. Returns the rank that was found dead first: whoever it took
  // with it (ranks that reported it and left) is not the cause.
  virtual std::uint32_t declare_dead(std::uint32_t rank) const = 0;
  // What has become of a dead rank, as part of a sentence.
  virtual std::string fate_of(std::uint32_t rank) const { return "rank " + std::to_string(rank) + " of the job died"; }
};

// Wakes the agent of a rank of this node: a lock was granted that it has asked for on behalf of another.
class Ringer {
 public:
  virtual ~Ringer() = default;
  virtual void ring(std::uint32_t owner) const = 0;
};

}  // namespace farsum
