#include "window/window.hpp"

#include <algorithm>

namespace farsum {

Window::Window(Parts parts)
    : parts_(std::move(parts)),
      regions_({.ranks = parts_.ranks,
                .shared = parts_.shared,
                .told = parts_.remote_regions,
                .agent = parts_.lock_agent,
                .dynamic = parts_.dynamic,
                .for_cards = parts_.cards.rdma != nullptr,
                .make = parts_.make_region,
                .explain = parts_.explain_region,
                .reach = parts_.reach}),
      texts_(parts_.id, parts_.name, parts_.ranks, parts_.lock_agent.liveness),
      checks_({.sizes = parts_.sizes,
               .promises = parts_.promises,
               .notification_slots = parts_.shape.notification_slots,
               .dynamic = parts_.dynamic,
               .regions = regions_,
               .texts = texts_}),
      mapped_(*parts_.kernels, parts_.lock_agent, texts_),
      copied_({.ranks = parts_.ranks,
               .transport = *parts_.transport,
               .kernels = *parts_.kernels,
               .agent = parts_.lock_agent,
               .mapped = mapped_,
               .texts = texts_,
               .caller_lock = parts_.settings.caller_lock}),
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
      table = regions_.read(target);
    } catch (...) {
      regions_.read_always();
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
