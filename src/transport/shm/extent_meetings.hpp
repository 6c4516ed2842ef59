// Extents that several ranks of a node are about to share, found by a key that all of them know.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "transport/shm/heap_extent.hpp"
#include "transport/shm/heap_lock.hpp"
#include "transport/shm/node_heap.hpp"

namespace farsum {

// In a table of the segment. Free when expected is 0.
struct PendingExtent {
  std::uint64_t key[2];
  std::uint32_t expected;
  std::uint32_t arrived;
  HeapExtent extent;
};

// The heap's lock guards the table. Any thread may call.
class ExtentMeetings {
 public:
  struct Key {
    std::uint64_t words[2] = {};
  };

  ExtentMeetings(HeapLock& lock, std::span<PendingExtent> table, NodeHeap& heap)
      : lock_(lock), table_(table), heap_(heap) {}

  // Lets `expected` ranks that name the same key get the same zeroed extent without waiting for each other: the first
  // to come makes it, the last to come ends the meeting. `me` is rank + 1.
  Result<HeapExtent> meet(const Key& key, std::uint32_t expected, std::uint64_t bytes, std::uint32_t me);

 private:
  // What the first to come would bring.
  struct Spare {
    HeapExtent extent;
    bool has_no_room = false;
    Status refusal;  // of the heap, once a rank has died while it changed it
  };
  std::optional<HeapExtent> join(const Key& key, std::uint32_t expected, Spare& spare, std::uint32_t me);

  HeapLock& lock_;
  const std::span<PendingExtent> table_;
  NodeHeap& heap_;
};

}  // namespace farsum
