// The lock of the node segment's heap, which the ranks of a node share; it guards the heap's books, the
// meetings over extents, and the marks of those for CPU atomics alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "lockfree/stripe_lock.hpp"
#include "transport/shm/rank_block.hpp"

namespace farsum {

// The lock of a holder that died is taken over so that the others can end in order, but what it guards may be half
// changed, and is left alone from then on. Any thread may call.
class HeapLock {
 public:
  // `broken_by`: rank + 1 of the holder that died. All of it lies in the segment; a rank's block says who it is.
  HeapLock(StripeLock& word, std::atomic<std::uint32_t>& broken_by, std::span<const RankBlock> ranks)
      : word_(word), broken_by_(broken_by), ranks_(ranks) {}
  HeapLock(const HeapLock&) = delete;
  HeapLock& operator=(const HeapLock&) = delete;

  class Guard {
   public:
    // `me` is rank + 1.
    Guard(HeapLock& lock, std::uint32_t me) : lock_(lock) { lock_.take(me); }
    ~Guard() { lock_.word_.release(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    // Relaxed, here and below: the lock orders it.
    bool usable() const { return lock_.broken_by_.load(std::memory_order_relaxed) == 0; }
    Status refusal() const;

   private:
    HeapLock& lock_;
  };

  // For tests that kill its holder.
  StripeLock& word() { return word_; }

 private:
  void take(std::uint32_t me);
  bool is_gone(std::uint32_t holder) const;

  StripeLock& word_;
  std::atomic<std::uint32_t>& broken_by_;
  const std::span<const RankBlock> ranks_;
};

}  // namespace farsum
