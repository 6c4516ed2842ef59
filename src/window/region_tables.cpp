#include "window/region_tables.hpp"

#include <algorithm>
#include <new>

namespace farsum {

RegionTables::RegionTables(const Sources& sources)
    : from_(sources), known_(std::make_unique<Known[]>(sources.ranks.size())), reads_always_(sources.dynamic) {}

// What a rank of this node has published in a dynamic window. Nothing where the owner has died while it wrote: then
// what was known before counts, for the job ends anyway. Throws bad_alloc where its table cannot be mapped.
std::optional<std::vector<SharedRegion>> RegionTables::copy_of_published(const RankWindow& shared,
                                                                         std::uint64_t& version) const {
  StripeLock& table_lock = shared.head().table_lock;
  const Liveness* liveness = from_.agent.liveness;
  const auto release = [](StripeLock* held) { held->release(); };
  // A table that has moved lies where this process may have nothing mapped yet, which the others need not wait for.
  std::span<const SharedRegion> reached;
  const SharedRegion* refused = nullptr;
  for (;;) {
    const bool taken = table_lock.acquire(from_.agent.id, [liveness](std::uint32_t holder) {
      return liveness != nullptr && liveness->is_dead(holder - 1);
    });
    if (!taken) return std::nullopt;
    std::unique_ptr<StripeLock, decltype(release)> taken_lock(&table_lock, release);
    const std::span<const SharedRegion> table(shared.regions(), shared.head().region_count);
    const bool is_reached = shared.head().moved_table == 0 || !from_.reach ||
                            (table.data() == reached.data() && table.size() <= reached.size());
    if (is_reached) {
      // Relaxed: the lock orders it.
      version = shared.head().table_version.load(std::memory_order_relaxed);
      return std::vector<SharedRegion>(table.begin(), table.end());
    }
    taken_lock.reset();
    if (from_.reach(table.data(), table.size_bytes())) {
      reached = table;
      continue;
    }
    // It may have moved on, and what was left of it be nobody's, before it could be mapped.
    if (refused == table.data()) throw std::bad_alloc();
    refused = table.data();
  }
}

RegionTable RegionTables::read(std::uint32_t target) {
  Known& known = known_[target];
  const RankWindow& shared = from_.shared[target];
  const std::lock_guard lock(known.mutex);
  if (!shared.is_here() || from_.for_cards) return known.table = from_.told[target];
  if (!from_.dynamic) {
    // It was written before the ranks met, and stays: no lock.
    if (known.table == nullptr) known.table = make_table(target, {shared.regions(), shared.head().region_count});
    return known.table;
  }
  // Acquire pairs with the release store of whoever changed the table.
  const std::uint64_t version = shared.head().table_version.load(std::memory_order_acquire);
  if (known.table != nullptr && version == known.version) return known.table;
  std::uint64_t version_read = 0;
  const std::optional<std::vector<SharedRegion>> copy = copy_of_published(shared, version_read);
  if (!copy) {
    if (known.table == nullptr) known.table = std::make_shared<std::vector<Region>>();
    return known.table;
  }
  known.table = make_table(target, *copy);
  known.version = version_read;
  return known.table;
}

RegionTable RegionTables::make_table(std::uint32_t target, std::span<const SharedRegion> published) const {
  auto table = std::make_shared<std::vector<Region>>();
  table->reserve(published.size());
  for (const SharedRegion& region : published) table->push_back(from_.make(from_.ranks[target], region));
  std::sort(table->begin(), table->end(), [](const Region& a, const Region& b) { return a.offset < b.offset; });
  return table;
}

RegionRef RegionTables::at(std::uint32_t target, std::uint64_t offset, std::uint64_t bytes) {
  RegionRef ref;
  const std::vector<Region>* table = known_[target].table.get();
  if (reads_always_) {
    ref.keep = read(target);
    table = ref.keep.get();
  }
  auto after = std::upper_bound(table->begin(), table->end(), offset,
                                [](std::uint64_t value, const Region& region) { return value < region.offset; });
  if (after == table->begin()) return {};
  const Region* region = &*std::prev(after);
  if (offset - region->offset >= region->bytes) return {};
  ref.region = region;
  ref.whole = bytes <= region->bytes - (offset - region->offset);
  if (region->is_sparse) [[unlikely]] {
    const std::uint64_t at = offset - region->offset;
    ref.is_reached = from_.reach && from_.reach(region->mapped + at, std::min(bytes, region->bytes - at));
  }
  ref.read_only = region->read_only;
  ref.atomics_only = region->domain.atomics_only;
  ref.same_locks = !region->mixed_locks;
  std::uint64_t end = region->offset + region->bytes;
  while (end < offset + bytes) {
    if (after == table->end() || after->offset != end) return {};
    end += after->bytes;
    ref.same_locks = ref.same_locks && !after->mixed_locks && after->domain.locks == region->domain.locks &&
                     after->domain.atomics_only == region->domain.atomics_only;
    ref.read_only = ref.read_only || after->read_only;
    ref.atomics_only = ref.atomics_only || after->domain.atomics_only;
    ++after;
  }
  return ref;
}

std::vector<Region> RegionTables::explained(std::uint32_t rank) {
  std::vector<Region> regions = *read(rank);
  if (!from_.explain) return regions;
  for (Region& region : regions) region.reason = from_.explain(rank, region);
  return regions;
}

RegionRef RegionTables::of_pieces(const Operation& operation, std::uint32_t target) {
  RegionRef all;
  ops::PieceCursor cursor(operation.target_layout, operation.bytes);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    RegionRef found = at(target, operation.offset + static_cast<std::uint64_t>(piece.offset), piece.bytes);
    if (found.region == nullptr) return {};
    const bool read_only = all.read_only || found.read_only;
    const bool atomics_only = all.atomics_only || found.atomics_only;
    if (all.region == nullptr) all = std::move(found);
    all.read_only = read_only;
    all.atomics_only = atomics_only;
  }
  all.whole = false;
  all.same_locks = false;
  return all;
}

}  // namespace farsum
