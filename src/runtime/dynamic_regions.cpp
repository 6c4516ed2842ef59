#include "runtime/dynamic_regions.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace farsum {
namespace {

// A change of this rank's own table of regions, which others may be reading.
class TableGuard {
 public:
  TableGuard(RankWindowHead& head, const PeerWatch& watch, Rank me) : head_(head) {
    // A reader that died holding it has changed nothing.
    while (!head.table_lock.acquire(me + 1, [&](std::uint32_t holder) { return watch.is_dead(holder - 1); })) {
      const std::uint32_t holder = head.table_lock.holder();
      if (holder != 0 && watch.is_dead(holder - 1) && head.table_lock.break_dead(holder, me + 1)) break;
    }
  }
  ~TableGuard() { head_.table_lock.release(); }
  TableGuard(const TableGuard&) = delete;
  TableGuard& operator=(const TableGuard&) = delete;

 private:
  RankWindowHead& head_;
};

}  // namespace

// A table that is full moves to a place of twice the size.
Status DynamicRegions::make_room(WindowObject& object, std::uint64_t count) {
  const Window::Parts& parts = object.window->parts();
  const std::uint64_t now =
      object.table.bytes == 0 ? parts.shape.most_regions * sizeof(SharedRegion) : object.table.bytes;
  if (count * sizeof(SharedRegion) <= now) return {};
  Result<HeapExtent> made =
      parts_.node.segment().allocate(std::max(2 * now, count * sizeof(SharedRegion)), parts_.node.id_in_segment());
  if (!made.is_ok()) return made.take_status();
  if (Status status = parts_.node.segment().reach(made.value()); !status.is_ok()) {
    parts_.node.segment().release(made.value(), parts_.node.id_in_segment());
    return status;
  }
  const RankWindow& own = parts.shared[parts.my_rank];
  auto* const place = reinterpret_cast<SharedRegion*>(parts_.node.segment().at(made.value().offset));
  {
    const TableGuard guard(own.head(), parts_.watch, parts_.node.rank());
    std::copy(own.regions(), own.regions() + own.head().region_count, place);
    own.head().moved_table = reinterpret_cast<std::byte*>(place) - reinterpret_cast<std::byte*>(&own.head());
  }
  parts_.extents.give_back(std::exchange(object.table, made.value()));
  return {};
}

// Adds regions behind those that are there: readers sort what they copy.
void DynamicRegions::publish(WindowObject& object, const DescribedMemory& all) {
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  RankWindowHead& head = own.head();
  // First what may find no memory.
  parts_.exposures.add(parts.id, all.exposed);
  const TableGuard guard(head, parts_.watch, parts_.node.rank());
  std::copy(all.shared.begin(), all.shared.end(), own.regions() + head.region_count);
  head.region_count += static_cast<std::uint32_t>(all.shared.size());
  // Release pairs with the acquire load in RegionTables::read.
  head.table_version.fetch_add(1, std::memory_order_release);
}

// Takes the regions in [begin, end) out of the table; the last ones take their places.
void DynamicRegions::withdraw(WindowObject& object, std::uint64_t begin, std::uint64_t end) {
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  RankWindowHead& head = own.head();
  parts_.exposures.remove(parts.id, begin, end);
  const TableGuard guard(head, parts_.watch, parts_.node.rank());
  SharedRegion* const regions = own.regions();
  for (std::uint32_t i = head.region_count; i-- > 0;) {
    if (begin <= regions[i].offset && regions[i].offset < end) regions[i] = regions[--head.region_count];
  }
  // Release pairs with the acquire load in RegionTables::read.
  head.table_version.fetch_add(1, std::memory_order_release);
}

Status DynamicRegions::attach(WindowObject& object, void* memory, std::uint64_t bytes) {
  if (!object.dynamic)
    return {Code::argument, "farsum_window_attach: the window is not dynamic; its memory was set when it was made"};
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(object.regions_mutex);
  if (bytes == 0) {
    object.attached.emplace(begin, 0);
    return {};
  }
  WindowWish wish;
  wish.flavour = Flavour::dynamic;
  wish.memory = static_cast<std::byte*>(memory);
  wish.bytes = bytes;
  if (Status status = parts_.descriptions.look_at(wish, "farsum_window_attach"); !status.is_ok()) return status;
  // Disjoint as they are, only the last that is not empty can reach into this one.
  for (auto earlier = object.attached.lower_bound(begin + bytes); earlier != object.attached.begin();) {
    --earlier;
    if (earlier->second == 0) continue;
    if (begin >= earlier->first + earlier->second) break;
    return {Code::argument,
            fmt::format("farsum_window_attach: [{:#x}, {:#x}) overlaps [{:#x}, {:#x}), which is attached already",
                        begin, begin + bytes, earlier->first, earlier->first + earlier->second)};
  }
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  DescribedMemory all;
  parts_.descriptions.describe(wish, "attached user memory", all);
  const std::uint64_t count = own.head().region_count + all.shared.size();
  if (Status status = make_room(object, count); !status.is_ok()) {
    return {status.code(), fmt::format("farsum_window_attach: with {} regions attached, a table of {}: {}",
                                       object.attached.size(), count, status.text())};
  }
  std::multimap<std::uintptr_t, std::uint64_t> entry = {{begin, bytes}};
  publish(object, all);
  object.attached.merge(entry);
  return {};
}

Status DynamicRegions::detach(WindowObject& object, const void* memory) {
  if (!object.dynamic) return {Code::argument, "farsum_window_detach: the window is not dynamic"};
  const std::lock_guard lock(object.regions_mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto attached = object.attached.find(begin);
  if (attached == object.attached.end()) {
    return {Code::range, fmt::format("farsum_window_detach: no region that starts at {:#x} is attached", begin)};
  }
  const std::uint64_t end = begin + attached->second;
  if (begin == end) {
    object.attached.erase(attached);
    return {};
  }
  withdraw(object, begin, end);
  object.attached.erase(attached);
  return {};
}

}  // namespace farsum
