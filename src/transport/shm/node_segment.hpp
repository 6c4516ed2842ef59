// The memory that the ranks of one node share: one sparse memfd. It holds what the ranks need to find each other, the
// node's stripe locks, and a heap from which windows, channels and control blocks are cut. Everything in it is an
// offset, never a pointer; pages exist only where somebody has written, and all of it is gone with the last process.
// Each process maps what it uses of it (segment_map.hpp), at one distance from the offset everywhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.hpp"
#include "lockfree/stripe_lock.hpp"
#include "transport/shm/atomics_only_extents.hpp"
#include "transport/shm/extent_meetings.hpp"
#include "transport/shm/heap_extent.hpp"
#include "transport/shm/heap_lock.hpp"
#include "transport/shm/node_heap.hpp"
#include "transport/shm/rank_block.hpp"
#include "transport/shm/segment_file.hpp"
#include "transport/shm/segment_map.hpp"

namespace farsum {

struct NodeHeader;

// One place in this process. Ranks that are threads of one process (tests) share an object.
class NodeSegment {
 public:
  using Options = SegmentFile::Options;
  using MeetingKey = ExtentMeetings::Key;
  using Room = NodeHeap::Room;

  // Opens the segment behind `fd` (an empty memfd is initialised; whoever comes first does it). Takes the descriptor
  // unless it fails.
  static Result<std::unique_ptr<NodeSegment>> open(int fd, const Options& options);
  // A segment of this process alone.
  static Result<std::unique_ptr<NodeSegment>> create(const Options& options);
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  std::uint32_t ranks() const { return ranks_; }
  int fd() const { return file_.fd(); }
  std::uint64_t bytes() const { return file_.bytes(); }
  RankBlock& rank(std::uint32_t local_rank);
  StripeLock* stripes();
  // Where the channel from sender to receiver lies: 0 until it is made.
  std::atomic<std::uint64_t>& channel(std::uint32_t receiver, std::uint32_t sender);
  // rank + 1 of the first rank found dead; 0 while all live. Set once, by whoever notices.
  std::atomic<std::uint32_t>& failed_rank();
  // A counter that all ranks draw window identities from.
  std::atomic<std::uint32_t>& next_window_id();
  // A tag in the names under which ranks of this node are woken that sleep on descriptors; random, and the same for
  // all.
  std::uint64_t wake_tag() const;
  // The block of the team of all ranks; zeroed, team_bytes long.
  std::byte* world_team();

  // Maps what of the extent this process has not mapped yet; before anything in it is touched. No lock is taken where
  // all of it is mapped. no_memory where limits or other maps leave no room: then nothing of it may be touched.
  Status reach(HeapExtent extent);
  bool is_reached(HeapExtent extent) const { return map_->is_reached(extent.offset, extent.bytes); }
  // No thread of this process touches the extent again, but the heap still counts it as allocated: where limits count
  // what is mapped, most of it is unmapped.
  void leave_extent(HeapExtent extent);
  bool would_leave(HeapExtent extent) const { return extent.bytes >= SegmentMap::granule_bytes && map_->is_limited(); }
  // The process is about to lock its memory: what nobody has allocated is unmapped. `more_follows`: what is mapped from
  // now on is locked, too, and so no more is mapped than is used.
  void leave_free_memory(std::uint32_t me, bool more_follows);
  // Words of the file, mapped or not, as those of SegmentFile.
  std::optional<std::uint64_t> read_word(std::uint64_t offset) const { return file_.read_word(offset); }
  void write_word(std::uint64_t offset, std::uint64_t word) { file_.write_word(offset, word); }

  // Only what is reached may be touched there; the header and the blocks of ranks and teams always are.
  std::byte* at(std::uint64_t offset) { return base_ + offset; }
  const std::byte* begin() const { return base_; }
  std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }
  // Whether the segment has its place there. Other memory of the program may lie where nothing of it is mapped.
  bool has_place_for(const void* address, std::uint64_t bytes) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    return offset < file_.bytes() && bytes <= file_.bytes() - offset;
  }
  // Whether that memory is the segment's.
  bool contains(const void* address, std::uint64_t bytes) const {
    return has_place_for(address, bytes) && map_->is_reached(offset_of(address), bytes);
  }

  // Local rank `me` is done with this context. The last to leave empties the file, so that a next context starts anew;
  // nobody may touch the segment through another mapping after its own leave(). `keeps_memory`: some of the program's
  // own memory still lies in the file, which is then never emptied; there is no next context.
  void leave(std::uint32_t me, bool keeps_memory);

  NodeHeap& heap() { return heap_; }
  // Guards the books of the heap, the meetings and the marks. For tests that kill its holder.
  StripeLock& heap_lock() { return lock_.word(); }

  // What the parts do, for whoever has the segment.
  Result<HeapExtent> allocate(std::uint64_t bytes, std::uint32_t me) { return heap_.allocate(bytes, me); }
  Result<HeapExtent> allocate_for(std::uintptr_t address, std::uint64_t bytes, std::uint64_t held_bytes,
                                  std::uint32_t me) {
    return heap_.allocate_for(address, bytes, held_bytes, me);
  }
  void release(HeapExtent extent, std::uint32_t me) { heap_.release(extent, me); }
  void discard(HeapExtent extent, std::uint32_t me) { heap_.discard(extent, me); }
  bool is_allocated(HeapExtent extent, std::uint32_t me) const { return heap_.is_allocated(extent, me); }
  Room room() const { return heap_.room(); }
  Result<HeapExtent> meet(const MeetingKey& key, std::uint32_t expected, std::uint64_t bytes, std::uint32_t me) {
    return meetings_.meet(key, expected, bytes, me);
  }
  bool mark_atomics_only(HeapExtent extent, std::uint32_t me) { return atomics_only_.mark(extent, me); }
  void unmark_atomics_only(HeapExtent extent, std::uint32_t me) { atomics_only_.unmark(extent, me); }
  HeapExtent first_atomics_only(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me) const {
    return atomics_only_.first_in(offset, bytes, me);
  }

 private:
  NodeSegment(int fd, std::unique_ptr<SegmentMap> map, std::uint64_t bytes, std::uint32_t ranks);

  SegmentFile file_;
  std::unique_ptr<SegmentMap> map_;
  std::byte* base_;
  NodeHeader& header_;
  std::uint32_t ranks_;
  HeapLock lock_;
  NodeHeap heap_;
  AtomicsOnlyExtents atomics_only_;
  ExtentMeetings meetings_;
};

}  // namespace farsum
