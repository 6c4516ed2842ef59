#include "window/window.hpp"

#include <algorithm>
#include <new>

#include <fmt/format.h>

namespace farsum {
namespace {

WindowParts with_place(WindowParts parts) {
  parts.lock_agent.place = parts.my_rank;
  return parts;
}

std::vector<std::uint32_t> targets_of_other_nodes(const std::vector<RankWindow>& shared) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t target = 0; target < shared.size(); ++target)
    if (!shared[target].is_here()) others.push_back(target);
  return others;
}

// A view as it is before the regions are known.
void begin_view(TargetView& view, std::uint32_t target, const WindowParts& parts) {
  view.owner = parts.ranks[target];
  // The owner may have taken the memory away: it then refuses one operation and no other.
  view.outstanding.goes_alone = parts.dynamic;
  const bool has_lock = (parts.promises & promise_no_locks) == 0 && parts.shared[target].is_here();
  if (has_lock) view.lock = &parts.shared[target].lock();
}

}  // namespace

Window::Window(Parts parts)
    : parts_(with_place(std::move(parts))),
      size_(static_cast<std::uint32_t>(parts_.ranks.size())),
      remote_targets_(targets_of_other_nodes(parts_.shared)),
      hot_parts_{.size = size_,
                 .lock_id = parts_.lock_agent.id,
                 .kernels = parts_.kernels,
                 .agent = &parts_.lock_agent,
                 .aggregates = parts_.settings.path == PathChoice::aggregated},
      own_views_(parts_.views == nullptr ? std::make_unique<TargetView[]>(size_) : nullptr),
      views_(parts_.views == nullptr ? own_views_.get() : parts_.views),
      states_(std::make_unique<TargetState[]>(size_)),
      regions_({.ranks = parts_.ranks,
                .shared = parts_.shared,
                .told = parts_.remote_regions,
                .agent = parts_.lock_agent,
                .dynamic = parts_.dynamic,
                .for_cards = parts_.make_cards != nullptr,
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
      words_(views_, size_),
      rules_(words_, {views_, size_}, parts_.promises),
      order_(states_.get(), size_),
      messages_({.window = parts_.id,
                 .my_rank = parts_.my_rank,
                 .ranks = parts_.ranks,
                 .engine = *parts_.engine,
                 .waiter = *parts_.waiter,
                 .views = views_,
                 .texts = texts_}),
      remote_locks_({.messages = messages_,
                     .waiter = *parts_.waiter,
                     .agent = parts_.lock_agent,
                     .ranks = parts_.ranks,
                     .states = states_.get(),
                     .texts = texts_}),
      notifications_({.window = parts_.id,
                      .my_rank = parts_.my_rank,
                      .slots = parts_.shape.notification_slots,
                      .ranks = parts_.ranks,
                      .shared = parts_.shared,
                      .wake_rank = parts_.wake_rank,
                      .waiter = *parts_.waiter}),
      mapped_(*parts_.kernels, parts_.lock_agent, texts_),
      scatter_(*parts_.kernels, parts_.lock_agent, texts_),
      copied_({.ranks = parts_.ranks,
               .transport = *parts_.transport,
               .kernels = *parts_.kernels,
               .agent = parts_.lock_agent,
               .mapped = mapped_,
               .texts = texts_,
               .caller_lock = parts_.settings.caller_lock}),
      owner_(messages_, remote_locks_),
      gathered_(hot_parts_.aggregates
                    ? std::make_optional<GatheredUpdates>(messages_, remote_locks_, size_, parts_.aggregate_limit)
                    : std::nullopt),
      reads_(make_reads()),
      cards_(make_executor(parts_.make_cards)),
      leases_(remote_targets_.empty() ? nullptr : make_executor(parts_.make_leases)),
      completions_({.size = size_,
                    .shared = parts_.shared,
                    .messages = messages_,
                    .locks = remote_locks_,
                    .order = order_,
                    .gathered = gathered_ ? &*gathered_ : nullptr,
                    .reads = reads_.get(),
                    .cards = cards_.get(),
                    .keeps_order = (parts_.promises & promise_no_ordering) == 0}),
      local_locks_({.ranks = parts_.ranks,
                    .shared = parts_.shared,
                    .agent = parts_.lock_agent,
                    .waiter = *parts_.waiter,
                    .texts = texts_}),
      locks_({.hot = hot(),
              .checks = checks_,
              .texts = texts_,
              .words = words_,
              .rules = rules_,
              .local = local_locks_,
              .remote = remote_locks_,
              .completions = completions_}),
      biased_(words_, local_locks_, parts_.shared[parts_.my_rank], parts_.my_rank),
      all_locks_({.hot = hot(),
                  .my_rank = parts_.my_rank,
                  .remote_targets = remote_targets_,
                  .texts = texts_,
                  .words = words_,
                  .rules = rules_,
                  .local = local_locks_,
                  .remote = remote_locks_,
                  .locks = locks_,
                  .biased = biased_,
                  .completions = completions_}),
      posts_({.window = parts_.id,
              .my_rank = parts_.my_rank,
              .defers = !parts_.dynamic,
              .ranks = parts_.ranks,
              .shared = parts_.shared,
              .wake_rank = parts_.wake_rank,
              .checks = checks_,
              .texts = texts_,
              .words = words_,
              .rules = rules_,
              .states = states_.get(),
              .messages = messages_,
              .completions = completions_,
              .waiter = *parts_.waiter,
              .hearing = parts_.hearing,
              .check = [this](const Operation& operation, std::uint32_t target,
                              RegionRef& at) { return check(operation, target, at); },
              .carry_out =
                  [this](const Operation& operation, std::uint32_t target) {
                    return execute(operation, target, Completion::implicit, nullptr);
                  }}) {
  for (std::uint32_t target = 0; target < size_; ++target) begin_view(views_[target], target, parts_);
}

std::unique_ptr<AnsweredReads> Window::make_reads() {
  const bool may_answer = parts_.read_age_ns != 0 && parts_.hearing != nullptr && !parts_.dynamic &&
                          !hot_parts_.aggregates && !parts_.make_cards && !remote_targets_.empty();
  if (!may_answer) return nullptr;
  const ReadAhead::Options options{parts_.read_age_ns, parts_.hearing, parts_.read_copies, parts_.now_ns,
                                   (parts_.promises & promise_single_element) != 0};
  return std::make_unique<AnsweredReads>(options, parts_.sizes, remote_targets_, messages_, remote_locks_);
}

std::unique_ptr<Executor> Window::make_executor(const MakeExecutor& make) {
  if (!make) return nullptr;
  return make({.window = parts_.id,
               .promises = parts_.promises,
               .ranks = parts_.ranks,
               .kernels = *parts_.kernels,
               .views = views_,
               .order = order_,
               .messages = messages_,
               .locks = remote_locks_,
               .owner = owner_,
               .waiter = *parts_.waiter,
               .hearing = parts_.hearing,
               .counters = *parts_.counters,
               .notifications = notifications_,
               .texts = texts_});
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
    const bool takes_any_element = cards_ == nullptr && (parts_.promises & promise_single_element) == 0;
    TargetState& state = states_[target];
    if (takes_any_element && !is_here(target) &&
        is_plain_at(region, hot_parts_.aggregates ? Path::aggregated : Path::owner))
      state.remote_bytes = std::min(region.bytes, parts_.sizes[target]);
    if (takes_any_element && is_here(target) && is_plain_at(region, Path::attach) && !region.is_sparse &&
        region.bytes <= parts_.sizes[target])
      state.copied = &region;
    if (region.mapped == nullptr || region.bulk != Path::direct || region.atomic != Path::direct || region.read_only)
      continue;
    TargetView& view = views_[target];
    view.memory = region.mapped;
    view.direct_bytes = region.bytes;
    view.domain = region.domain;
  }
}

// ---- fence ----

Status Window::fence(bool precede, bool succeed) {
  constexpr const char* call = "farsum_fence";
  bool ends_epoch = precede;
  {
    const MutexGuard lock(rules_.mutex());
    if (const char* const why = rules_.why_not(EpochCall::fence); why != nullptr) return texts_.refuse(call, why);
    ends_epoch = ends_epoch || rules_.is(epoch_fence);
  }
  // A failed operation is told at the end: the others wait in the barrier, whatever this rank has to report.
  Status flushed;
  if (ends_epoch) flushed = completions_.flush_all(call);
  if (Status status = parts_.team->barrier(call); !status.is_ok()) return status;
  const MutexGuard lock(rules_.mutex());
  if (!rules_.set_fence(succeed)) return texts_.refuse(call, "a lock was taken meanwhile; unlock it first");
  rules_.note_fence();
  return flushed;
}

// ---- flush ----

Status Window::flush_every_target(Reach reach) {
  const char* const call = reach == Reach::local ? "farsum_flush_local" : "farsum_flush";
  const std::int32_t least = rules_.least_open_to_flush();
  bool in_epoch = false;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (least == active_epoch && posts_.awaits_post(target)) {
      if (Status status = posts_.await_post(target, call); !status.is_ok()) return status;
    }
    in_epoch |= words_.of(target) >= least;
  }
  if (!in_epoch) return outside_flushable_epoch(fmt::format("{}: window {}", call, parts_.id));
  if (reach == Reach::target) return completions_.flush_all(call);
  Status first;
  for (std::uint32_t target = 0; target < size_; ++target) {
    Status status = completions_.await_buffers(target, call);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

Status Window::flush_one_target(std::uint32_t target, Reach reach) {
  const char* const call = reach == Reach::local ? "farsum_flush_local" : "farsum_flush";
  if (Status status = checks_.rank(call, target); !status.is_ok()) return status;
  const std::int32_t least = rules_.least_open_to_flush();
  if (least == active_epoch && posts_.awaits_post(target)) {
    if (Status status = posts_.await_post(target, call); !status.is_ok()) return status;
  }
  if (words_.of(target) < least) return outside_flushable_epoch(texts_.where(call, target));
  return reach == Reach::local ? completions_.await_buffers(target, call) : completions_.flush(target, call);
}

Status Window::outside_flushable_epoch(const std::string& what) const {
  if (rules_.least_open_to_flush() == active_epoch) return {Code::sync, what + ": outside an access epoch"};
  return {Code::sync, what +
                          ": outside an access epoch of farsum_lock or farsum_lock_all, which the window demands "
                          "(FARSUM_STRICT_EPOCHS)"};
}

// ---- its end ----

Status Window::settle(const char* call) {
  {
    const MutexGuard lock(rules_.mutex());
    if (Status status = rules_.check_closed(call, texts_); !status.is_ok()) return status;
  }
  Status flushed = completions_.flush_all(call);
  Status fetched = completions_.await_all_fetches(call);
  return flushed.is_ok() ? std::move(fetched) : std::move(flushed);
}

void Window::close() {
  const MutexGuard lock(rules_.mutex());
  rules_.close();
}

// Without memory what is under way is dropped: the other ranks wait for this one, whatever it leaves undone.
void Window::abandon(const char* call) {
  try {
    (void)completions_.flush_all(call);
    (void)completions_.await_all_fetches(call);
    posts_.abandon(call);
  } catch (const std::bad_alloc&) {
    // See above.
  }
  const MutexGuard lock(rules_.mutex());
  if (biased_.are_held()) biased_.drop();
  for (std::uint32_t target = 0; target < size_; ++target) locks_.abandon(target, call);
  rules_.abandon();
}

}  // namespace farsum
