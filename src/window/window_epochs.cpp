// Epochs: fence, post-start-complete-wait, and notifications. On one node they meet in shared memory, else in that of
// the target's agent; nobody needs the target's program. The order of memory: closing an access epoch flushes, and
// flush ends with a full fence, before anything here tells the target.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "window/epoch_refusals.hpp"
#include "window/window.hpp"

namespace farsum {

// ---- the words of the targets ----

// Acquire pairs with the release in close_epoch, whatever thread that was on.
bool Window::open_epoch(std::uint32_t target, AccessEpoch epoch) {
  std::int32_t open = no_epoch;
  return views_[target].open.compare_exchange_strong(open, epoch, std::memory_order_acquire, std::memory_order_relaxed);
}

void Window::close_epoch(std::uint32_t target) {
  if (has_asked_locks()) parts_.lock_agent.asked->forget(details_[target].granted);
  views_[target].open.store(no_epoch, std::memory_order_release);
}

void Window::settle_lockable() {
  const bool allowed = !closed_ && !started_ && (parts_.promises & promise_no_locks) == 0;
  // Relaxed: see HotWindow::lock.
  views_[0].locks_allowed.store(allowed, std::memory_order_relaxed);
}

// ---- fence ----

Status Window::fence(bool precede, bool succeed) {
  {
    const std::lock_guard lock(sync_mutex_);
    if (const char* const why = why_no_fence(); why != nullptr) return texts_.refuse("farsum_fence", why);
  }
  // A failed operation is told at the end: the others wait in the barrier, whatever this rank has to report.
  Status flushed;
  if (precede || fence_open_) flushed = flush_all("farsum_fence");
  if (Status status = parts_.team->barrier("farsum_fence"); !status.is_ok()) return status;
  const std::lock_guard lock(sync_mutex_);
  if (!set_fence(succeed)) return texts_.refuse("farsum_fence", "a lock was taken meanwhile; unlock it first");
  hot_at_fence_ = hot_operations();
  issued_.store(false, std::memory_order_relaxed);
  return flushed;
}

const char* Window::why_no_fence() const {
  if (closed_) return being_freed;
  // The epoch of a fence includes every target: no lock can be held in it.
  if (all_locked_ || (!fence_open_ && locks_held() != 0)) return lock_held;
  return started_ || exposed_ ? "an epoch of start or post is open; complete it first" : nullptr;
}

// False, and nothing has changed, when another epoch includes a target.
bool Window::set_fence(bool open) {
  if (open == fence_open_) return true;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (!open) {
      close_epoch(target);
    } else if (!open_epoch(target, active_epoch)) {
      while (target-- != 0) close_epoch(target);
      return false;
    }
  }
  fence_open_ = open;
  return true;
}

// An epoch of another kind begins: that of a fence ends if nothing was issued in it.
const char* Window::leave_fence() {
  if (const char* const why = why_fence_stays(); why != nullptr) return why;
  (void)set_fence(false);
  return nullptr;
}

const char* Window::why_fence_stays() const {
  const bool was_used = fence_open_ && (issued_.load(std::memory_order_relaxed) || hot_operations() != hot_at_fence_);
  return was_used ? "operations were issued in the epoch of a fence; end it with another farsum_fence first" : nullptr;
}

// ---- the end ----

Status Window::check_closed_epochs(const char* call) const {
  if (!all_locked_ && !started_ && !exposed_ && locks_held() == 0) return {};
  const std::string what = texts_.of_window(call);
  if (all_locked_)
    return {Code::pending, fmt::format("{}: farsum_lock_all is not undone; call farsum_unlock_all first", what)};
  if (const std::uint32_t held = locks_held(); held != 0)
    return {Code::pending, fmt::format("{}: {} locks are held; call farsum_unlock first", what, held)};
  if (started_) return {Code::pending, fmt::format("{}: an access epoch is open; call farsum_complete first", what)};
  if (exposed_)
    return {Code::pending, fmt::format("{}: an exposure epoch is open; call farsum_wait_exposure first", what)};
  return {};
}

Status Window::settle(const char* call) {
  {
    const std::lock_guard lock(sync_mutex_);
    if (Status status = check_closed_epochs(call); !status.is_ok()) return status;
  }
  Status flushed = flush_all(call);
  Status fetched = await_all_fetches(call);
  return flushed.is_ok() ? std::move(fetched) : std::move(flushed);
}

void Window::close() {
  const std::lock_guard lock(sync_mutex_);
  (void)set_fence(false);
  closed_ = true;
  settle_lockable();
}

// Without memory what is under way is dropped.
void Window::abandon_operations(const char* call) noexcept {
  try {
    (void)flush_all(call);
    (void)await_all_fetches(call);
    for (std::uint32_t target = 0; target < size_; ++target) {
      if (awaits_post(target) && (!has_posted(target) || !await_post(target, call).is_ok())) give_up_post(target);
    }
    if (started_) (void)complete();
    // A second try: the failure that hindered the first has been told.
    if (started_) (void)complete();
  } catch (const std::bad_alloc&) {
    // The other ranks wait for this one, whatever it leaves undone.
  }
}

// One of another node whose owner cannot be told, for want of memory, goes with the window.
void Window::abandon_lock(std::uint32_t target, LockMode mode, const char* call) noexcept {
  try {
    (void)drop_lock(target, mode, call);
  } catch (const std::bad_alloc&) {
    // As in abandon_operations.
  }
}

void Window::abandon(const char* call) {
  abandon_operations(call);
  const std::lock_guard lock(sync_mutex_);
  if (bias_epoch_ != 0) drop_bias();
  for (std::uint32_t target = 0; target < size_; ++target) {
    const std::int32_t open = views_[target].open.load(std::memory_order_relaxed);
    if (open >= passive_epoch && open < unchecked_lock)
      abandon_lock(target, open == locked_exclusive ? LockMode::exclusive : LockMode::shared, call);
    close_epoch(target);
  }
  all_locked_ = false;
  exposed_ = false;
  fence_open_ = false;
  closed_ = true;
  settle_lockable();
}

// ---- post, start, complete, wait ----

Status Window::post(std::span<const std::uint32_t> origins) {
  const std::lock_guard lock(sync_mutex_);
  if (closed_) return texts_.refuse("farsum_post", being_freed);
  if (exposed_) return texts_.refuse("farsum_post", "already posted; call farsum_wait_exposure first");
  if (Status status = check_ranks("farsum_post", origins); !status.is_ok()) return status;
  exposed_ = true;
  completes_expected_ += origins.size();
  for (const std::uint32_t origin : origins) {
    if (!is_here(origin)) {
      Status sent = tell(origin, wire::MessageKind::post, 0, nullptr, views_[origin].outstanding);
      if (!sent.is_ok()) return sent;
      continue;
    }
    // Release: this rank's stores to its memory come before the post; pairs with the acquire load in are_more_than.
    parts_.shared[origin].posts()[parts_.my_rank].fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[origin]);
  }
  return {};
}

// Does not wait for the posts: with more ranks than processors a rank whose neighbour has not come to run yet would
// leave its processor idle, though it has work until its own rows are asked for (paper 2's automaton).
Status Window::start(std::span<const std::uint32_t> targets, Posts posts) {
  const std::lock_guard lock(sync_mutex_);
  if (Status status = check_ranks("farsum_start", targets); !status.is_ok()) return status;
  if (const char* const why = why_no_start(); why != nullptr) return texts_.refuse("farsum_start", why);
  started_ = true;
  settle_lockable();
  for (const std::uint32_t target : targets) {
    // Relaxed: for this thread, or for one that the program orders after it.
    if (posts == Posts::known || has_posted(target))
      begin_access(target);
    else
      details_[target].awaits_post.store(true, std::memory_order_relaxed);
  }
  started_targets_.assign(targets.begin(), targets.end());
  return {};
}

const char* Window::why_no_start() {
  if (closed_) return being_freed;
  if (started_) return "already started; call farsum_complete first";
  if (all_locked_ || (!fence_open_ && locks_held() != 0)) return lock_held;
  return leave_fence();
}

// Every rank named, and each once.
Status Window::check_ranks(const char* call, std::span<const std::uint32_t> ranks) const {
  constexpr std::size_t most_compared = 16;  // beyond, a table of who was named costs less
  std::vector<bool> named(ranks.size() > most_compared ? size_ : 0, false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t rank = ranks[i];
    if (Status status = checks_.rank(call, rank); !status.is_ok()) return status;
    const auto before = ranks.first(i);
    if (named.empty() ? std::find(before.begin(), before.end(), rank) != before.end() : named[rank])
      return {Code::argument, fmt::format("{}: window {}: rank {} is listed twice", call, parts_.id, rank)};
    if (!named.empty()) named[rank] = true;
  }
  return {};
}

namespace {

// Acquire pairs with the releases in post and in TargetService::serve_epoch. Counters wrap: only the difference counts.
// It is negative where a start that did not look has used up a post whose message is still under way.
bool are_more_than(const std::atomic<std::uint32_t>& posts, std::uint32_t seen) {
  return static_cast<std::int32_t>(posts.load(std::memory_order_acquire) - seen) > 0;
}

}  // namespace

bool Window::has_posted(std::uint32_t target) const {
  return are_more_than(parts_.shared[parts_.my_rank].posts()[target], posts_seen_[target]);
}

namespace {

// What costs more memory waits for the post instead.
constexpr std::size_t most_deferred = 32;
constexpr std::size_t most_pieces_deferred = 256;

bool is_cheap_to_defer(const Operation& operation) {
  return operation.kind != OperationKind::compare_and_swap &&
         std::max({operation.target_layout.pieces().size(), operation.operand_layout.pieces().size(),
                   operation.result_layout.pieces().size()}) <= most_pieces_deferred;
}

}  // namespace

// The sides that the kind has no use for may be anything.
Window::DeferredUntilPost::DeferredUntilPost(const Operation& operation)
    : operation_(operation),
      operand_layout_(operation.operand_layout),
      target_layout_(operation.target_layout),
      result_layout_(operation.result_layout) {
  if (operation.alpha != nullptr) std::memcpy(alpha_, operation.alpha, ops::size_of(operation.type));
}

Operation Window::DeferredUntilPost::operation() const {
  Operation operation = operation_;
  operation.operand_layout = operand_layout_.view();
  operation.target_layout = target_layout_.view();
  operation.result_layout = result_layout_.view();
  if (operation.alpha != nullptr) operation.alpha = alpha_;
  return operation;
}

// False where the operation cannot be deferred, or need not be any more.
bool Window::defer_until_post(const Operation& operation, std::uint32_t target, Status& status) {
  Detail& detail = details_[target];
  const std::lock_guard lock(detail.deferred_mutex);
  // A dynamic window's regions are those that the target has attached before its post.
  if (parts_.dynamic || !awaits_post(target) || has_posted(target) || detail.deferred.size() == most_deferred ||
      !is_cheap_to_defer(operation))
    return false;
  RegionRef at;
  status = check(operation, target, at);
  if (status.is_ok()) detail.deferred.emplace_back(operation);
  return true;
}

// Waits for the post, and carries out what was deferred for it: in its order and before anything that comes later. What
// was deferred and fails is told here.
Status Window::await_post(std::uint32_t target, const char* call) {
  Detail& detail = details_[target];
  std::unique_lock lock(detail.deferred_mutex);
  if (awaits_post(target) && !has_posted(target)) {
    const std::atomic<std::uint32_t>& posts = parts_.shared[parts_.my_rank].posts()[target];
    // Another thread may see the post first.
    const auto posted = [&, seen = posts_seen_[target]] { return are_more_than(posts, seen) || !awaits_post(target); };
    lock.unlock();
    if (Status status = parts_.waiter->wait(parts_.waiter->own_events(), posted, call); !status.is_ok()) return status;
    lock.lock();
  }
  if (!awaits_post(target)) return {};
  // The target says by it that it has done what it had to.
  if (parts_.hearing != nullptr) parts_.hearing->hear();
  // None is done twice, where one finds no memory.
  const std::vector<DeferredUntilPost> all_deferred = std::exchange(detail.deferred, {});
  Status first;
  for (const DeferredUntilPost& deferred : all_deferred) {
    Status status = operate_now(deferred.operation(), target, Completion::implicit, nullptr);
    if (first.is_ok()) first = std::move(status);
  }
  begin_access(target);
  return first;
}

// Its post will not come, or nobody waits for it any more: the epoch goes to its end without what was deferred.
void Window::give_up_post(std::uint32_t target) {
  const std::lock_guard lock(details_[target].deferred_mutex);
  if (!awaits_post(target)) return;
  details_[target].deferred.clear();
  begin_access(target);
}

// Called with deferred_mutex held, or by start.
void Window::begin_access(std::uint32_t target) {
  ++posts_seen_[target];
  // Nobody else opens an epoch here: no lock was held, and none is taken since.
  (void)open_epoch(target, active_epoch);
  details_[target].awaits_post.store(false, std::memory_order_release);
}

// Waits for the posts that were not there when the epoch began, without the mutex: another thread may have to post
// meanwhile.
void Window::await_started_posts(std::unique_lock<std::mutex>& lock, Status& failure) {
  const auto awaited = [this] {
    return std::find_if(started_targets_.begin(), started_targets_.end(),
                        [this](std::uint32_t target) { return awaits_post(target); });
  };
  while (failure.is_ok() && awaited() != started_targets_.end()) {
    const std::uint32_t target = *awaited();
    lock.unlock();
    failure = await_post(target, "farsum_complete");
    lock.lock();
    // The failure has been told, as with a failed flush, and the next try ends the epoch.
    if (!failure.is_ok()) give_up_post(target);
  }
}

Status Window::complete() {
  std::unique_lock lock(sync_mutex_);
  if (!started_) return texts_.refuse("farsum_complete", "no farsum_start precedes it");
  Status failure;
  await_started_posts(lock, failure);
  return failure.is_ok() ? end_access() : std::move(failure);
}

// A failed operation of a target of this node leaves its epoch open, for the next try; at one of another node the end
// travels with the operations, and all are under way before one is waited for.
Status Window::end_access() {
  constexpr const char* call = "farsum_complete";
  Status first;
  const auto note = [&first](Status status) {
    if (first.is_ok()) first = std::move(status);
  };
  settle_cards(call);
  std::vector<std::uint32_t> asked;
  for (const std::uint32_t target : started_targets_) {
    if (is_here(target) || !first.is_ok()) continue;
    // Room is made before anybody is asked, and only where a target is of another node, which is seldom.
    if (asked.empty()) asked.reserve(started_targets_.size());
    note(ask_to_end(target, wire::MessageKind::complete, LockMode::shared));
    if (first.is_ok()) asked.push_back(target);
  }
  for (const std::uint32_t target : started_targets_) {
    if (is_here(target) && first.is_ok()) note(flush(target, call));
  }
  const bool all_are_through = first.is_ok();
  for (const std::uint32_t target : asked) {
    note(await_end(target, call));
    close_epoch(target);
    std::erase(started_targets_, target);
  }
  if (!all_are_through) return first;
  for (const std::uint32_t target : started_targets_) {
    close_epoch(target);
    // Release: the operations come before; pairs with the acquire load in wait_exposure.
    parts_.shared[target].head().completes.fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[target]);
  }
  started_ = false;
  settle_lockable();
  started_targets_.clear();
  return first;
}

Status Window::wait_exposure() {
  std::unique_lock lock(sync_mutex_);
  if (!exposed_) return texts_.refuse("farsum_wait_exposure", "no farsum_post precedes it");
  std::atomic<std::uint64_t>& completes = parts_.shared[parts_.my_rank].head().completes;
  // Acquire pairs with the releases in end_access and in TargetService::serve_epoch.
  const auto completed = [&completes, expected = completes_expected_] {
    return completes.load(std::memory_order_acquire) >= expected;
  };
  if (!completed()) {
    // It waits without the mutex: another thread may have to complete an access epoch meanwhile.
    lock.unlock();
    Status status = parts_.waiter->wait(parts_.waiter->own_events(), completed, "farsum_wait_exposure");
    if (!status.is_ok()) return status;
    lock.lock();
  }
  exposed_ = false;
  return {};
}

Status Window::test_exposure(bool& done) {
  const std::lock_guard lock(sync_mutex_);
  if (!exposed_) return texts_.refuse("farsum_test_exposure", "no farsum_post precedes it");
  done = parts_.shared[parts_.my_rank].head().completes.load(std::memory_order_acquire) >= completes_expected_;
  if (!done) return parts_.waiter->looked_in_vain("farsum_test_exposure");
  exposed_ = false;
  return {};
}

Status Window::sync() {
  flush_fence();
  return {};
}

// ---- notifications ----

Status Window::notify_wait(std::uint32_t slot, std::uint64_t at_least) {
  if (slot >= parts_.shape.notification_slots) {
    return {Code::range,
            fmt::format("farsum_notify_wait: window {}: slot {} was asked for, but the window has {} (0 to {})",
                        parts_.id, slot, parts_.shape.notification_slots, parts_.shape.notification_slots - 1)};
  }
  const std::atomic<std::uint64_t>& value = parts_.shared[parts_.my_rank].notifications()[slot];
  // Acquire pairs with the release of whoever bumped it: the data is here.
  const auto arrived = [&] { return value.load(std::memory_order_acquire) >= at_least; };
  if (arrived()) return {};
  return parts_.waiter->wait(parts_.waiter->own_events(), arrived, "farsum_notify_wait");
}

Status Window::notify_value(std::uint32_t slot, std::uint64_t& value) const {
  if (slot >= parts_.shape.notification_slots) {
    return {Code::range, fmt::format("farsum_notify_value: window {}: slot {} was asked for, but the window has {}",
                                     parts_.id, slot, parts_.shape.notification_slots)};
  }
  value = parts_.shared[parts_.my_rank].notifications()[slot].load(std::memory_order_acquire);
  return {};
}

}  // namespace farsum
