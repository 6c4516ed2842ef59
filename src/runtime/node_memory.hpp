// Memory of the node segment that a rank hands to its program block by block (farsum_memory_allocate): size classes
// over extents of the node's heap. Its books are private to the process, so that a stray store into the memory of a
// program cannot break them. Caches per thread lie above it (capi/memory.cpp).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Any thread may call. Blocks are given back by any thread, each once: `live` of a block says whether it is out.
class NodeMemory {
 public:
  // Classes: every 64 bytes up to 512, then four to an octave up to 64 MiB. What is longer has no class.
  static constexpr std::uint32_t classes = 76;
  static constexpr std::uint64_t most_class_bytes = std::uint64_t{1} << 26;
  static constexpr std::uint32_t no_class = classes;

  static constexpr std::uint32_t class_of(std::uint64_t bytes) {
    if (bytes <= 512) return bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes - 1) / 64);
    if (bytes > most_class_bytes) return no_class;
    const auto octave = static_cast<std::uint32_t>(63 - std::countl_zero(bytes - 1));
    return 8 + (octave - 9) * 4 + (static_cast<std::uint32_t>((bytes - 1) >> (octave - 2)) & 3);
  }
  static constexpr std::uint64_t class_bytes(std::uint32_t size_class) {
    if (size_class < 8) return (size_class + 1) * std::uint64_t{64};
    const std::uint32_t octave = 9 + (size_class - 8) / 4;
    return std::uint64_t{5 + (size_class - 8) % 4} << (octave - 2);
  }

  struct Block {
    std::byte* address = nullptr;
    std::atomic<std::uint8_t>* live = nullptr;  // 1 while the program has it
  };

  NodeMemory(NodeSegment& segment, std::uint32_t me);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // What the blocks of every class of a power of two, and all long ones, are aligned to, as far as their length goes.
  static constexpr std::uint64_t natural_alignment = page_bytes;
  // The bytes to ask allocate() for, so that the block is at a multiple of `alignment`, a power of two up to the
  // natural.
  static constexpr std::uint64_t bytes_for(std::uint64_t bytes, std::uint64_t alignment) {
    if (alignment <= 1U << granule_shift || bytes > most_short_bytes) return bytes;
    return std::bit_ceil(bytes < alignment ? alignment : bytes);
  }

  // A block of at least `bytes`, not yet live. no_memory with the bytes asked and available.
  Result<Block> allocate(std::uint64_t bytes);
  // The same at a multiple of `alignment`, a power of two beyond the natural.
  Result<Block> allocate_aligned(std::uint64_t bytes, std::uint64_t alignment);
  // As many blocks of a class as lie ready without asking the heap; at most blocks.size().
  std::size_t take_ready(std::uint32_t size_class, std::span<Block> blocks);
  // Blocks that are no longer live.
  void give_back(std::span<const Block> blocks);
  // The block that starts at `address`, live or not, and its class; a null block for all else.
  Block find(const void* address, std::uint32_t& size_class) const {
    if (!segment_.has_place_for(address, 1)) return {};
    const std::uint64_t offset = segment_.offset_of(address);
    const Unit* unit = unit_at(offset);
    if (unit == nullptr || offset % (1U << granule_shift) != 0) return {};
    const std::uint64_t granule = (offset - unit->first) >> granule_shift;
    if (granule >= unit->granules) return {};
    size_class = unit->size_class;
    return {segment_.at(offset), &unit->live[granule]};
  }

  // Bytes of the heap that it holds, handed out or not.
  std::uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  // The heap aligns what is at least this long to it, so no two units share an entry of the map.
  static constexpr unsigned entry_shift = 14;
  static constexpr unsigned leaf_shift = 27;
  static constexpr unsigned granule_shift = 6;
  // Blocks up to this are cut from units of several; longer ones are units of their own.
  static constexpr std::uint64_t most_short_bytes = 32768;

  // An extent: one long block, or a run of short ones of one class.
  struct Unit {
    HeapExtent extent;
    std::uint64_t first = 0;  // offset of the first block: where the extent starts, but in what was aligned
    std::uint32_t size_class = no_class;
    std::uint32_t granules = 0;  // places at which a block may start, 64 bytes apart: 1 of a long one
    std::uint32_t blocks = 0;
    std::uint32_t fresh = 0;                            // blocks from here on were never handed out
    std::vector<std::uint32_t> vacant;                  // granules of blocks given back
    bool listed = false;                                // among ready_
    std::unique_ptr<std::atomic<std::uint8_t>[]> live;  // by granule
  };
  struct Leaf {
    std::array<std::atomic<Unit*>, std::size_t{1} << (leaf_shift - entry_shift)> units{};
  };

  static bool is_short(std::uint32_t size_class);
  static std::size_t entry_of(std::uint64_t offset) {
    return offset >> entry_shift & ((std::size_t{1} << (leaf_shift - entry_shift)) - 1);
  }
  Unit* unit_at(std::uint64_t offset) const {
    // Acquire pairs with the releases in make_unit.
    const Leaf* leaf = root_[offset >> leaf_shift].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : leaf->units[entry_of(offset)].load(std::memory_order_acquire);
  }
  Result<HeapExtent> reached_extent(std::uint64_t bytes) FARSUM_REQUIRES(mutex_);
  Result<Unit*> make_unit(std::uint64_t block_bytes, std::uint32_t size_class, std::uint64_t alignment = 1)
      FARSUM_REQUIRES(mutex_);
  void drop_unit(Unit* unit) FARSUM_REQUIRES(mutex_);
  Status check_room(std::uint64_t bytes) FARSUM_REQUIRES(mutex_);
  Result<Block> allocate_long(std::uint64_t bytes, std::uint32_t size_class) FARSUM_REQUIRES(mutex_);
  Result<Block> allocate_short(std::uint32_t size_class) FARSUM_REQUIRES(mutex_);
  Block pop(Unit& unit) FARSUM_REQUIRES(mutex_);
  void give_back_long(Unit* unit) FARSUM_REQUIRES(mutex_);
  void give_back_short(Unit* unit, std::uint32_t granule) FARSUM_REQUIRES(mutex_);
  bool empty_cache() FARSUM_REQUIRES(mutex_);

  NodeSegment& segment_;
  const std::uint32_t me_;
  // Leads from an offset in the segment to its unit. Written under the mutex, read without: entries come before the
  // block.
  std::vector<std::atomic<Leaf*>> root_;
  std::atomic<std::uint64_t> held_bytes_{0};

  ThreadMutex mutex_;
  std::vector<std::unique_ptr<Leaf>> leaves_ FARSUM_GUARDED_BY(mutex_);
  // A unit that was looked up by a wrong address may be read: none is deleted.
  std::vector<std::unique_ptr<Unit>> units_ FARSUM_GUARDED_BY(mutex_);
  std::vector<Unit*> vacant_long_ FARSUM_GUARDED_BY(mutex_), vacant_short_ FARSUM_GUARDED_BY(mutex_);
  // Short: units with a free block; long: units that are free.
  std::array<std::vector<Unit*>, classes> ready_ FARSUM_GUARDED_BY(mutex_);
  std::uint64_t ready_long_bytes_ FARSUM_GUARDED_BY(mutex_) = 0;
  // Taken from the heap since the node's room was last looked at.
  std::uint64_t unchecked_bytes_ FARSUM_GUARDED_BY(mutex_) = 0;
};

}  // namespace farsum
