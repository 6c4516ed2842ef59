#include "window/window.hpp"

#include <algorithm>
#include <new>

namespace farsum {

Window::Window(Parts parts)
    : parts_(std::move(parts)),
      size_(static_cast<std::uint32_t>(parts_.ranks.size())),
      hot_parts_{.size = size_,
                 .lock_id = parts_.lock_agent.id,
                 .kernels = parts_.kernels,
                 .agent = &parts_.lock_agent,
                 .aggregates = parts_.settings.path == PathChoice::aggregated},
      own_views_(parts_.views == nullptr ? std::make_unique<TargetView[]>(size_) : nullptr),
      views_(parts_.views == nullptr ? own_views_.get() : parts_.views),
      details_(std::make_unique<Detail[]>(size_)),
      card_targets_(parts_.cards.rdma == nullptr ? nullptr : std::make_unique<CardTarget[]>(size_)),
      reads_regions_(parts_.dynamic),
      posts_seen_(size_, 0) {
  parts_.lock_agent.place = parts_.my_rank;
  const bool locks = (parts_.promises & promise_no_locks) == 0;
  for (std::uint32_t target = 0; target < size_; ++target) {
    views_[target].owner = parts_.ranks[target];
    // The owner may have taken the memory away: it then refuses one operation and no other.
    views_[target].outstanding.goes_alone = parts_.dynamic;
    if (!is_here(target))
      remote_targets_.push_back(target);
    else if (locks)
      views_[target].lock = &parts_.shared[target].lock();
  }
  settle_lockable();
  if (may_answer_reads()) {
    const ReadAhead::Options options{parts_.read_age_ns, parts_.hearing, parts_.read_copies, parts_.now_ns,
                                     (parts_.promises & promise_single_element) != 0};
    read_ahead_ = std::make_unique<ReadAhead>(options, parts_.sizes);
  }
}

void Window::refresh_views() noexcept {
  if (parts_.dynamic) return;
  for (std::uint32_t target = 0; target < size_; ++target) {
    RegionTable table;
    try {
      table = read_regions(target);
    } catch (...) {
      reads_regions_ = true;
      continue;
    }
    // The hot path serves parts that are mapped from their first to their last byte and have no path forced upon them.
    if (table->size() != 1) continue;
    const Region& region = table->front();
    if (!is_here(target) && is_plain_remote(region, hot_parts_.aggregates ? Path::aggregated : Path::owner))
      details_[target].remote_bytes = std::min(region.bytes, parts_.sizes[target]);
    if (is_here(target) && is_plainly_copied(region) && region.bytes <= parts_.sizes[target])
      details_[target].copied = &region;
    if (region.mapped == nullptr || region.bulk != Path::direct || region.atomic != Path::direct || region.read_only)
      continue;
    TargetView& view = views_[target];
    view.memory = region.mapped;
    view.direct_bytes = region.bytes;
    view.domain = region.domain;
  }
}

// Whether the owner applies whatever single element it is asked to.
bool Window::is_plain_remote(const Region& region, Path path) const {
  return region.offset == 0 && region.atomic == path && !region.read_only && !region.domain.atomics_only &&
         card_targets_ == nullptr && (parts_.promises & promise_single_element) == 0;
}

// Whether the kernel copies whatever single element is updated there.
bool Window::is_plainly_copied(const Region& region) const {
  return region.offset == 0 && region.atomic == Path::attach && !region.read_only && !region.is_sparse &&
         !region.domain.atomics_only && card_targets_ == nullptr && (parts_.promises & promise_single_element) == 0;
}

// What a rank of this node has published in a dynamic window. Nothing where the owner has died while it wrote: then
// what was known before counts, for the job ends anyway. Throws bad_alloc where its table cannot be mapped.
std::optional<std::vector<SharedRegion>> Window::copy_of_table(const RankWindow& shared, std::uint64_t& version) const {
  StripeLock& table_lock = shared.head().table_lock;
  const Liveness* liveness = parts_.lock_agent.liveness;
  const auto release = [](StripeLock* held) { held->release(); };
  // A table that has moved lies where this process may have nothing mapped yet, which the others need not wait for.
  std::span<const SharedRegion> reached;
  const SharedRegion* refused = nullptr;
  for (;;) {
    const bool taken = table_lock.acquire(parts_.lock_agent.id, [liveness](std::uint32_t holder) {
      return liveness != nullptr && liveness->is_dead(holder - 1);
    });
    if (!taken) return std::nullopt;
    std::unique_ptr<StripeLock, decltype(release)> taken_lock(&table_lock, release);
    const std::span<const SharedRegion> table(shared.regions(), shared.head().region_count);
    const bool is_reached = shared.head().moved_table == 0 || !parts_.reach ||
                            (table.data() == reached.data() && table.size() <= reached.size());
    if (is_reached) {
      // Relaxed: the lock orders it.
      version = shared.head().table_version.load(std::memory_order_relaxed);
      return std::vector<SharedRegion>(table.begin(), table.end());
    }
    taken_lock.reset();
    if (parts_.reach(table.data(), table.size_bytes())) {
      reached = table;
      continue;
    }
    // It may have moved on, and what was left of it be nobody's, before it could be mapped.
    if (refused == table.data()) throw std::bad_alloc();
    refused = table.data();
  }
}

RegionTable Window::read_regions(std::uint32_t target) {
  Detail& detail = details_[target];
  const RankWindow& shared = parts_.shared[target];
  const std::lock_guard lock(detail.regions_mutex);
  if (!shared.is_here() || card_targets_ != nullptr) return detail.regions = parts_.remote_regions[target];
  if (!parts_.dynamic) {
    // It was written before the ranks met, and stays: no lock.
    if (detail.regions == nullptr) detail.regions = make_table(target, {shared.regions(), shared.head().region_count});
    return detail.regions;
  }
  // Acquire pairs with the release store of whoever changed the table.
  const std::uint64_t version = shared.head().table_version.load(std::memory_order_acquire);
  if (detail.regions != nullptr && version == detail.regions_version) return detail.regions;
  std::uint64_t version_read = 0;
  const std::optional<std::vector<SharedRegion>> copy = copy_of_table(shared, version_read);
  if (!copy) {
    if (detail.regions == nullptr) detail.regions = std::make_shared<std::vector<Region>>();
    return detail.regions;
  }
  detail.regions = make_table(target, *copy);
  detail.regions_version = version_read;
  return detail.regions;
}

RegionTable Window::make_table(std::uint32_t target, std::span<const SharedRegion> published) const {
  auto table = std::make_shared<std::vector<Region>>();
  table->reserve(published.size());
  for (const SharedRegion& region : published) table->push_back(parts_.make_region(parts_.ranks[target], region));
  std::sort(table->begin(), table->end(), [](const Region& a, const Region& b) { return a.offset < b.offset; });
  return table;
}

RegionRef Window::region_at(std::uint32_t target, std::uint64_t offset, std::uint64_t bytes) {
  RegionRef ref;
  const std::vector<Region>* table = details_[target].regions.get();
  if (reads_regions_) {
    ref.keep = read_regions(target);
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
    ref.is_reached = parts_.reach && parts_.reach(region->mapped + at, std::min(bytes, region->bytes - at));
  }
  ref.read_only = region->read_only;
  std::uint64_t end = region->offset + region->bytes;
  while (end < offset + bytes) {
    if (after == table->end() || after->offset != end) return {};
    end += after->bytes;
    ref.same_locks = ref.same_locks && after->domain.locks == region->domain.locks &&
                     after->domain.atomics_only == region->domain.atomics_only;
    ref.read_only = ref.read_only || after->read_only;
    ++after;
  }
  return ref;
}

std::vector<Region> Window::regions_of(std::uint32_t rank) {
  std::vector<Region> regions = *read_regions(rank);
  if (!parts_.explain_region) return regions;
  for (Region& region : regions) region.reason = parts_.explain_region(rank, region);
  return regions;
}

void Window::count(Path path, std::uint64_t bytes) {
  const auto index = static_cast<std::size_t>(path);
  // Relaxed: statistics.
  parts_.counters->operations[index].fetch_add(1, std::memory_order_relaxed);
  parts_.counters->bytes[index].fetch_add(bytes, std::memory_order_relaxed);
}

Window::Traffic Window::traffic_to(std::uint32_t target) const {
  const TargetView& view = views_[target];
  // Relaxed: statistics.
  const std::uint64_t words = view.hot_words.load(std::memory_order_relaxed);
  return {
      words + view.hot_operations.load(std::memory_order_relaxed) +
          view.other_operations.load(std::memory_order_relaxed),
      8 * words + view.hot_bytes.load(std::memory_order_relaxed) + view.other_bytes.load(std::memory_order_relaxed)};
}

std::uint64_t Window::hot_operations() const {
  std::uint64_t sum = 0;
  for (std::uint32_t target = 0; target < size_; ++target) {
    sum += views_[target].hot_operations.load(std::memory_order_relaxed) +
           views_[target].hot_words.load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint64_t Window::hot_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t target = 0; target < size_; ++target) {
    sum += views_[target].hot_bytes.load(std::memory_order_relaxed) +
           8 * views_[target].hot_words.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace farsum
