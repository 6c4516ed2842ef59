#include "runtime/node_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace farsum {
namespace {

constexpr std::uint64_t short_unit_bytes = 262144;
// Long blocks that wait for their next use, pages and all.
constexpr std::uint64_t most_ready_bytes = std::uint64_t{32} << 20;
// The heap asks the node for room for long extents only; the sum of short ones is held against it this often.
constexpr std::uint64_t unchecked_limit = std::uint64_t{16} << 20;

static_assert(NodeMemory::class_of(64) == 0 && NodeMemory::class_of(513) == 8 &&
              NodeMemory::class_of(NodeMemory::most_class_bytes) + 1 == NodeMemory::classes);

}  // namespace

bool NodeMemory::is_short(std::uint32_t size_class) {
  return size_class < classes && class_bytes(size_class) <= most_short_bytes;
}

NodeMemory::NodeMemory(NodeSegment& segment, std::uint32_t me)
    : segment_(segment), me_(me), root_((segment.bytes() >> leaf_shift) + 1) {}

// The extents stay with the segment, which ends with the context.
NodeMemory::~NodeMemory() = default;

// What the node can back, looked at once in a while.
Status NodeMemory::check_room(std::uint64_t bytes) {
  unchecked_bytes_ += bytes;
  if (unchecked_bytes_ <= unchecked_limit) return {};
  const NodeSegment::Room room = segment_.room();
  if (bytes > room.bytes) {
    return {Code::no_memory,
            fmt::format("asked for {} bytes of shared memory, but {} bytes are available, bounded by {}", bytes,
                        room.bytes, room.bound)};
  }
  unchecked_bytes_ = 0;
  return {};
}

Result<HeapExtent> NodeMemory::reached_extent(std::uint64_t bytes) {
  if (Status status = check_room(bytes); !status.is_ok()) return status;
  Result<HeapExtent> made = segment_.allocate(bytes, me_);
  if (!made.is_ok()) return made;
  if (Status status = segment_.reach(made.value()); !status.is_ok()) {
    segment_.release(made.value(), me_);
    return status;
  }
  return made;
}

Result<NodeMemory::Unit*> NodeMemory::make_unit(std::uint64_t block_bytes, std::uint32_t size_class,
                                                std::uint64_t alignment) {
  const bool cut = is_short(size_class);
  // The heap gives pages. Where the block begins within its extent, no other unit has that entry of the map.
  const std::uint64_t room = alignment <= page_bytes ? 0 : alignment - page_bytes;
  const std::uint64_t least = room == 0 ? 0 : std::uint64_t{1} << entry_shift;
  // What overflows is more than the heap has, and told by it.
  const std::uint64_t bytes = cut ? short_unit_bytes : std::max({block_bytes, block_bytes + room, least});
  Result<HeapExtent> extent = reached_extent(bytes);
  // What waits here for a next use is given up before the program hears of want.
  if (!extent.is_ok() && empty_cache()) extent = reached_extent(bytes);
  if (!extent.is_ok()) return extent.take_status();

  std::vector<Unit*>& vacant = cut ? vacant_short_ : vacant_long_;
  if (vacant.empty()) {
    units_.push_back(std::make_unique<Unit>());
    units_.back()->granules = cut ? short_unit_bytes >> granule_shift : 1;
    units_.back()->live = std::make_unique<std::atomic<std::uint8_t>[]>(units_.back()->granules);
    vacant.push_back(units_.back().get());
  }
  Unit* unit = vacant.back();
  vacant.pop_back();
  unit->extent = extent.value();
  const auto begin = reinterpret_cast<std::uintptr_t>(segment_.at(unit->extent.offset));
  unit->first = unit->extent.offset + (round_up(begin, alignment) - begin);
  unit->size_class = size_class;
  unit->blocks = cut ? static_cast<std::uint32_t>(short_unit_bytes / block_bytes) : 1;
  unit->fresh = 0;
  unit->vacant.clear();
  held_bytes_.fetch_add(unit->extent.bytes, std::memory_order_relaxed);
  // Only a block's first byte is ever looked up, which in a long one lies at the start.
  const std::uint64_t end = unit->first + (cut ? short_unit_bytes : 1);
  for (std::uint64_t offset = unit->first; offset < end; offset += std::uint64_t{1} << entry_shift) {
    std::atomic<Leaf*>& leaf = root_[offset >> leaf_shift];
    if (leaf.load(std::memory_order_relaxed) == nullptr) {
      leaves_.push_back(std::make_unique<Leaf>());
      leaf.store(leaves_.back().get(), std::memory_order_release);
    }
    leaf.load(std::memory_order_relaxed)->units[entry_of(offset)].store(unit, std::memory_order_release);
  }
  return unit;
}

void NodeMemory::drop_unit(Unit* unit) {
  const bool cut = is_short(unit->size_class);
  const std::uint64_t end = unit->first + (cut ? short_unit_bytes : 1);
  for (std::uint64_t offset = unit->first; offset < end; offset += std::uint64_t{1} << entry_shift) {
    Leaf* leaf = root_[offset >> leaf_shift].load(std::memory_order_relaxed);
    leaf->units[entry_of(offset)].store(nullptr, std::memory_order_release);
  }
  held_bytes_.fetch_sub(unit->extent.bytes, std::memory_order_relaxed);
  segment_.release(unit->extent, me_);
  unit->extent = {};
  (cut ? vacant_short_ : vacant_long_).push_back(unit);
}

// Gives long blocks that nobody uses back to the node; false when there were none.
bool NodeMemory::empty_cache() {
  bool dropped = false;
  for (std::uint32_t size_class = 0; size_class < classes; ++size_class) {
    if (is_short(size_class)) continue;
    for (Unit* unit : ready_[size_class]) {
      dropped = true;
      drop_unit(unit);
    }
    ready_[size_class].clear();
  }
  ready_long_bytes_ = 0;
  return dropped;
}

Result<NodeMemory::Block> NodeMemory::allocate(std::uint64_t bytes) {
  const std::uint32_t size_class = class_of(bytes);
  const MutexGuard lock(mutex_);
  return is_short(size_class) ? allocate_short(size_class) : allocate_long(bytes, size_class);
}

Result<NodeMemory::Block> NodeMemory::allocate_long(std::uint64_t bytes, std::uint32_t size_class) {
  if (size_class != no_class && !ready_[size_class].empty()) {
    Unit* unit = ready_[size_class].back();
    ready_[size_class].pop_back();
    ready_long_bytes_ -= unit->extent.bytes;
    return Block{segment_.at(unit->first), &unit->live[0]};
  }
  Result<Unit*> made = make_unit(size_class == no_class ? bytes : class_bytes(size_class), size_class);
  if (!made.is_ok()) return made.take_status();
  return Block{segment_.at(made.value()->first), &made.value()->live[0]};
}

// The block is of no class, so that it is not kept for somebody who wants another alignment.
Result<NodeMemory::Block> NodeMemory::allocate_aligned(std::uint64_t bytes, std::uint64_t alignment) {
  const MutexGuard lock(mutex_);
  Result<Unit*> made = make_unit(bytes, no_class, alignment);
  if (!made.is_ok()) return made.take_status();
  return Block{segment_.at(made.value()->first), &made.value()->live[0]};
}

Result<NodeMemory::Block> NodeMemory::allocate_short(std::uint32_t size_class) {
  std::vector<Unit*>& ready = ready_[size_class];
  if (ready.empty()) {
    Result<Unit*> made = make_unit(class_bytes(size_class), size_class);
    if (!made.is_ok()) return made.take_status();
    made.value()->listed = true;
    ready.push_back(made.value());
  }
  return pop(*ready.back());
}

// A block of the unit that is the last of its class's ready ones.
NodeMemory::Block NodeMemory::pop(Unit& unit) {
  std::uint32_t granule = 0;
  if (!unit.vacant.empty()) {
    granule = unit.vacant.back();
    unit.vacant.pop_back();
  } else {
    granule = static_cast<std::uint32_t>(unit.fresh++ * (class_bytes(unit.size_class) >> granule_shift));
  }
  if (unit.vacant.empty() && unit.fresh == unit.blocks) {
    unit.listed = false;
    ready_[unit.size_class].pop_back();
  }
  return {segment_.at(unit.first + (std::uint64_t{granule} << granule_shift)), &unit.live[granule]};
}

std::size_t NodeMemory::take_ready(std::uint32_t size_class, std::span<Block> blocks) {
  if (!is_short(size_class)) return 0;
  const MutexGuard lock(mutex_);
  std::size_t taken = 0;
  while (taken < blocks.size() && !ready_[size_class].empty()) blocks[taken++] = pop(*ready_[size_class].back());
  return taken;
}

void NodeMemory::give_back(std::span<const Block> blocks) {
  const MutexGuard lock(mutex_);
  for (const Block& block : blocks) {
    const std::uint64_t offset = segment_.offset_of(block.address);
    Unit* unit = unit_at(offset);
    if (is_short(unit->size_class)) {
      give_back_short(unit, static_cast<std::uint32_t>((offset - unit->first) >> granule_shift));
    } else {
      give_back_long(unit);
    }
  }
}

void NodeMemory::give_back_long(Unit* unit) {
  if (unit->size_class == no_class || ready_long_bytes_ + unit->extent.bytes > most_ready_bytes) {
    drop_unit(unit);
    return;
  }
  ready_long_bytes_ += unit->extent.bytes;
  ready_[unit->size_class].push_back(unit);
}

void NodeMemory::give_back_short(Unit* unit, std::uint32_t granule) {
  unit->vacant.push_back(granule);
  std::vector<Unit*>& ready = ready_[unit->size_class];
  if (!unit->listed) {
    unit->listed = true;
    ready.push_back(unit);
  }
  // One unit of a class stays, so that a program at the edge of one does not make and drop it in turn.
  if (unit->vacant.size() != unit->fresh || ready.size() < 2) return;
  unit->listed = false;
  ready.erase(std::find(ready.begin(), ready.end(), unit));
  drop_unit(unit);
}

}  // namespace farsum
