// The heap of the node segment: who gets which extent, and where its pages go when it is given back. Its books lie in
// the segment, where the heap's lock guards them; it maps nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.hpp"
#include "transport/shm/free_extents.hpp"
#include "transport/shm/heap_extent.hpp"
#include "transport/shm/heap_lock.hpp"
#include "transport/shm/kept_extents.hpp"
#include "transport/shm/room_look.hpp"
#include "transport/shm/segment_file.hpp"
#include "transport/shm/segment_map.hpp"

namespace farsum {

// Any thread may call. `me` is rank + 1.
class NodeHeap {
 public:
  // In the segment, written under the lock.
  struct Books {
    std::atomic<std::uint64_t>& allocated_bytes;  // read without it, for room(): relaxed
    FreeExtents free;
    KeptExtents& kept;  // free as well, but for one length
  };
  // Bytes that could be allocated now without promising memory that the node does not have, and what bounds them.
  struct Room {
    std::uint64_t bytes = 0;
    std::string bound;
  };

  // A rank that dies inside the lock ends the job; nobody repairs the heap.
  NodeHeap(HeapLock& lock, Books books, SegmentFile& file, SegmentMap& map)
      : lock_(lock), books_(books), file_(file), map_(map) {}
  NodeHeap(const NodeHeap&) = delete;
  NodeHeap& operator=(const NodeHeap&) = delete;

  // Cuts `bytes` zeroed bytes off the heap, page-aligned, and maps nothing. no_memory when the heap's address space is
  // used up or the node cannot back it, with the bytes asked and available.
  Result<HeapExtent> allocate(std::uint64_t bytes, std::uint32_t me);
  // The same for what is to be mapped over whole pages at `address`: congruent to it modulo huge_page_bytes if the heap
  // has such a stretch, so that huge pages can be mapped there; page-aligned otherwise. `held_bytes` of it the process
  // holds already, and gives back for it: there need be no room for them.
  Result<HeapExtent> allocate_for(std::uintptr_t address, std::uint64_t bytes, std::uint64_t held_bytes,
                                  std::uint32_t me);
  // Gives it back, mapped or not. Its pages go to the system, unless it is mapped here and they are few enough: then
  // they wait, zeroed, for the next extent of its length.
  void release(HeapExtent extent, std::uint32_t me);
  // The same of what was cut for one place, which no other wants: its pages go to the system.
  void discard(HeapExtent extent, std::uint32_t me);
  // Whether none of it is free.
  bool is_allocated(HeapExtent extent, std::uint32_t me) const;
  // Unmaps in this process what nobody has allocated.
  void leave_free_memory(std::uint32_t me);

  Room room() const;
  std::uint64_t allocated_bytes() const { return books_.allocated_bytes.load(std::memory_order_relaxed); }
  // The bytes of pages that wait, in the node, for the next extent of their length.
  std::uint64_t kept_bytes() const { return books_.kept.bytes(); }

 private:
  // A promotion has pages of its own: with those of an extent that waited, memory that was never touched would be
  // there.
  enum class Use : std::uint8_t { by_windows, by_promotions };
  Result<HeapExtent> allocate(Use use, std::uint64_t bytes, std::uint64_t held_bytes,
                              std::span<const HeapAlignment> alignments, std::uint32_t me);
  Result<HeapExtent> cut(std::uint64_t bytes, std::span<const HeapAlignment> alignments, std::uint32_t me);
  Status look_for_room(std::uint64_t bytes, std::uint32_t me);
  void give_back(HeapExtent extent, std::uint32_t me);
  bool keep(HeapExtent extent, std::uint32_t me);
  HeapExtent take_kept(std::uint64_t bytes, const HeapAlignment& alignment, std::uint32_t me);
  void give_to_system(HeapExtent extent, std::uint32_t me);
  bool give_oldest_kept_to_system(std::uint32_t me);

  HeapLock& lock_;
  Books books_;
  SegmentFile& file_;
  SegmentMap& map_;
  RoomLook last_look_;
};

}  // namespace farsum
