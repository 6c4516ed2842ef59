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
#include <span>
#include <string>

#include "base/status.hpp"
#include "base/units.hpp"
#include "lockfree/awaited_rank.hpp"
#include "lockfree/doorbell.hpp"
#include "lockfree/lock_free_permit.hpp"
#include "lockfree/stripe_lock.hpp"
#include "os/event_count.hpp"
#include "os/usable_processors.hpp"
#include "transport/shm/room_look.hpp"
#include "transport/shm/segment_map.hpp"

namespace farsum {

// The stripes for memory in the segment: it takes 128 MiB before two stripes share a lock.
inline constexpr std::uint32_t node_stripes = 8192;
inline constexpr std::uint32_t rank_stripes = 1024;  // for a rank's adopted memory
inline constexpr std::uint32_t most_node_ranks = 1024;

// Processors fetch lines in pairs: what one writes often is not beside what others look at.
inline constexpr std::size_t line_pair_bytes = 2 * cache_line_bytes;

// What the segment keeps of one rank.
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

// A stretch of the heap.
struct HeapExtent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct NodeHeader;

// One place in this process. Ranks that are threads of one process (tests) share an object.
class NodeSegment {
 public:
  struct Options {
    std::uint32_t ranks = 1;
    std::uint64_t segment_bytes = 0;  // 0: as much as the layout of processes and the limit on file size allow
    std::uint64_t team_bytes = 0;     // kept for the team of all ranks
  };

  // Opens the segment behind `fd` (an empty memfd is initialised; whoever comes first does it). Takes the descriptor.
  static Result<std::unique_ptr<NodeSegment>> open(int fd, const Options& options);
  // A segment of this process alone.
  static Result<std::unique_ptr<NodeSegment>> create(const Options& options);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  std::uint32_t ranks() const { return ranks_; }
  int fd() const { return fd_; }
  std::uint64_t bytes() const { return bytes_; }
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
  // A word of the file, mapped or not; nothing where the file has none there. As an acquire load.
  std::optional<std::uint64_t> read_word(std::uint64_t offset) const;
  // Stores one there. As a release store.
  void write_word(std::uint64_t offset, std::uint64_t word);

  // Only what is reached may be touched there; the header and the blocks of ranks and teams always are.
  std::byte* at(std::uint64_t offset) { return base_ + offset; }
  const std::byte* begin() const { return base_; }
  std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }
  // Whether the segment has its place there. Other memory of the program may lie where nothing of it is mapped.
  bool has_place_for(const void* address, std::uint64_t bytes) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    return offset < bytes_ && bytes <= bytes_ - offset;
  }
  // Whether that memory is the segment's.
  bool contains(const void* address, std::uint64_t bytes) const {
    return has_place_for(address, bytes) && map_->is_reached(offset_of(address), bytes);
  }

  // Cuts `bytes` zeroed bytes off the heap, page-aligned, and maps nothing; `me` is rank + 1. no_memory when the heap's
  // address space is used up or the node cannot back it, with the bytes asked and available. Any thread may call.
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
  bool is_allocated(HeapExtent extent, std::uint32_t me);
  // Lets `expected` ranks that name the same key get the same zeroed extent without waiting for each other: the first
  // to come makes it, the last to come ends the meeting.
  struct MeetingKey {
    std::uint64_t words[2] = {};
  };
  Result<HeapExtent> meet(const MeetingKey& key, std::uint32_t expected, std::uint64_t bytes, std::uint32_t me);

  // Marks memory that only CPU atomics may touch; false when there is no room for the mark.
  bool mark_atomics_only(HeapExtent extent, std::uint32_t me);
  void unmark_atomics_only(HeapExtent extent, std::uint32_t me);
  // The first such memory in [offset, offset + bytes), cut to that; 0 bytes when there is none.
  HeapExtent first_atomics_only(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me);

  // Local rank `me` is done with this context. The last to leave empties the file, so that a next context starts anew;
  // nobody may touch the segment through another mapping after its own leave(). `keeps_memory`: some of the program's
  // own memory still lies in the file, which is then never emptied; there is no next context.
  void leave(std::uint32_t me, bool keeps_memory);

  // Bytes that could be allocated now without promising memory that the node does not have, and what bounds them.
  struct Room {
    std::uint64_t bytes = 0;
    std::string bound;
  };
  Room room();
  std::uint64_t allocated_bytes() const;
  // The bytes of pages that wait, in the node, for the next extent of their length.
  std::uint64_t kept_bytes() const;

  // Guards the heap's books. For tests that kill its holder.
  StripeLock& heap_lock();

 private:
  class HeapGuard;
  // Where an extent may start: so many bytes past a multiple of the alignment, a power of two.
  struct Alignment {
    std::uint64_t bytes;
    std::uint64_t past;
  };
  NodeSegment(int fd, std::unique_ptr<SegmentMap> map, std::uint64_t bytes, std::uint32_t ranks);
  static Status initialise(int fd, const Options& options);
  NodeHeader& header() const;
  void punch(HeapExtent extent) const;
  void give_back(HeapExtent extent, std::uint32_t me);
  void join_free(HeapExtent extent);
  bool keep(HeapExtent extent, std::uint32_t me);
  HeapExtent take_kept(std::uint64_t bytes, const Alignment& alignment, std::uint32_t me);
  void give_to_system(HeapExtent extent, std::uint32_t me);
  bool give_oldest_kept_to_system(std::uint32_t me);
  // Called under the heap's lock; 0 bytes where no stretch has room.
  HeapExtent cut(std::uint64_t bytes, const Alignment& alignment);
  Status look_for_room(std::uint64_t bytes, std::uint32_t me);
  // A promotion has pages of its own: with those of an extent that waited, memory that was never touched would be
  // there.
  enum class Use : std::uint8_t { by_windows, by_promotions };
  Result<HeapExtent> allocate(Use use, std::uint64_t bytes, std::uint64_t held_bytes,
                              std::span<const Alignment> alignments, std::uint32_t me);

  int fd_;
  std::unique_ptr<SegmentMap> map_;
  std::byte* base_;
  std::uint64_t bytes_;
  std::uint32_t ranks_;
  RoomLook last_look_;
};

}  // namespace farsum
