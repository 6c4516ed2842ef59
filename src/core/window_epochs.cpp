// Epochs: fence, post-start-complete-wait, locks, and notifications. All of them meet in shared memory; nobody needs
// the target's program. The order of memory: closing an access epoch flushes, and flush ends with a full fence, before
// anything here tells the target.
#include <algorithm>

#include <fmt/format.h>

#include "core/window.hpp"

namespace farsum {
namespace {

const char* mode_name(LockMode mode) { return mode == LockMode::exclusive ? "exclusive" : "shared"; }

// A lock's holders are ranks plus one; a dead one is what everybody waits for in vain.
struct HolderDead {
  const Liveness* liveness = nullptr;
  bool operator()(std::uint32_t id) const { return liveness != nullptr && liveness->is_dead(id - 1); }
};

}  // namespace

// ---- fence ----

Status Window::fence(bool precede, bool succeed) {
  const std::string what = fmt::format("farsum_fence: window {}", parts_.id);
  {
    const std::lock_guard lock(sync_mutex_);
    if (Status status = refuse_when_closed(what); !status.is_ok()) return status;
    if (all_locked_ || locks_held_ != 0) return {Code::sync, what + ": a lock is held; unlock it first"};
    if (started_ || exposed_) return {Code::sync, what + ": an epoch of start or post is open; complete it first"};
  }
  // A failed operation is told at the end: the others wait in the barrier, whatever this rank has to report.
  Status flushed;
  if (precede || fence_open_) flushed = flush_all("farsum_fence");
  if (Status status = parts_.team->barrier("farsum_fence"); !status.is_ok()) return status;
  const std::lock_guard lock(sync_mutex_);
  set_fence(succeed);
  hot_at_fence_ = hot_operations();
  issued_.store(false, std::memory_order_relaxed);
  return flushed;
}

void Window::set_fence(bool open) {
  if (open != fence_open_) {
    for (std::uint32_t target = 0; target < size_; ++target) {
      // Relaxed: read by this process's threads, which the caller orders.
      views_[target].open.fetch_add(open ? 1 : ~std::uint32_t{0}, std::memory_order_relaxed);
    }
  }
  fence_open_ = open;
}

// An epoch of another kind begins: that of a fence ends if nothing was issued in it.
Status Window::leave_fence(const std::string& what) {
  if (!fence_open_) return {};
  if (issued_.load(std::memory_order_relaxed) || hot_operations() != hot_at_fence_) {
    return {Code::sync,
            what + ": operations were issued in the epoch of a fence; end it with another farsum_fence first"};
  }
  set_fence(false);
  return {};
}

Status Window::refuse_when_closed(const std::string& what) const {
  if (!closed_) return {};
  return {Code::sync, what + ": the window is being freed (farsum_window_prepare_free); no epoch can begin"};
}

// ---- the end ----

Status Window::settle(const char* call) {
  {
    const std::lock_guard lock(sync_mutex_);
    if (Status status = check_closed_epochs(call); !status.is_ok()) return status;
  }
  return flush_all(call);
}

void Window::close() {
  const std::lock_guard lock(sync_mutex_);
  set_fence(false);
  closed_ = true;
}

void Window::abandon(const char* call) {
  (void)flush_all(call);
  if (started_) (void)complete();
  // A second try: the failure that hindered the first has been told.
  if (started_) (void)complete();
  const std::lock_guard lock(sync_mutex_);
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (all_locked_ || details_[target].locked) (void)drop_lock(target, call);
    details_[target].locked = false;
    views_[target].open.store(0, std::memory_order_relaxed);
  }
  all_locked_ = false;
  locks_held_ = 0;
  exposed_ = false;
  fence_open_ = false;
  closed_ = true;
}

// ---- post, start, complete, wait ----

Status Window::post(const std::vector<std::uint32_t>& origins) {
  const std::lock_guard lock(sync_mutex_);
  if (exposed_ || closed_) {
    const std::string what = fmt::format("farsum_post: window {}", parts_.id);
    if (Status status = refuse_when_closed(what); !status.is_ok()) return status;
    return {Code::sync, what + ": already posted; call farsum_wait_exposure first"};
  }
  if (Status status = check_ranks("farsum_post", origins); !status.is_ok()) return status;
  exposed_ = true;
  completes_expected_ += origins.size();
  for (const std::uint32_t origin : origins) {
    // Release: this rank's stores to its memory come before the post; pairs with the acquire load in start.
    parts_.shared[origin].posts()[parts_.my_rank].fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[origin]);
  }
  return {};
}

Status Window::start(std::vector<std::uint32_t> targets) {
  std::unique_lock lock(sync_mutex_);
  if (Status status = check_ranks("farsum_start", targets); !status.is_ok()) return status;
  if (started_ || closed_ || fence_open_ || all_locked_ || locks_held_ != 0) {
    const std::string what = fmt::format("farsum_start: window {}", parts_.id);
    if (Status status = refuse_when_closed(what); !status.is_ok()) return status;
    if (started_) return {Code::sync, what + ": already started; call farsum_complete first"};
    if (all_locked_ || locks_held_ != 0) return {Code::sync, what + ": a lock is held; unlock it first"};
    if (Status status = leave_fence(what); !status.is_ok()) return status;
  }
  started_ = true;
  // Without the mutex: another thread may have to post meanwhile.
  lock.unlock();
  if (Status status = await_posts(targets); !status.is_ok()) {
    lock.lock();
    started_ = false;
    return status;
  }
  lock.lock();
  for (const std::uint32_t target : targets) {
    ++posts_seen_[target];
    views_[target].open.fetch_add(1, std::memory_order_relaxed);
  }
  started_targets_ = std::move(targets);
  return {};
}

// Every rank named, and each once.
Status Window::check_ranks(const char* call, const std::vector<std::uint32_t>& ranks) const {
  std::vector<bool> named(size_, false);
  for (const std::uint32_t rank : ranks) {
    if (Status status = check_rank(call, rank); !status.is_ok()) return status;
    if (named[rank])
      return {Code::argument, fmt::format("{}: window {}: rank {} is listed twice", call, parts_.id, rank)};
    named[rank] = true;
  }
  return {};
}

Status Window::await_posts(const std::vector<std::uint32_t>& targets) {
  std::atomic<std::uint32_t>* posts = parts_.shared[parts_.my_rank].posts();
  for (const std::uint32_t target : targets) {
    // Acquire pairs with the release in post. Counters wrap: only the difference counts.
    const auto posted = [&] { return posts[target].load(std::memory_order_acquire) != posts_seen_[target]; };
    if (posted()) continue;
    if (Status status = parts_.waiter->wait(parts_.waiter->own_events(), posted, "farsum_start"); !status.is_ok())
      return status;
  }
  return {};
}

Status Window::complete() {
  const std::lock_guard lock(sync_mutex_);
  if (!started_) return {Code::sync, fmt::format("farsum_complete: window {}: no farsum_start precedes it", parts_.id)};
  for (const std::uint32_t target : started_targets_) {
    if (Status status = flush(target, "farsum_complete"); !status.is_ok()) return status;
  }
  for (const std::uint32_t target : started_targets_) {
    views_[target].open.fetch_sub(1, std::memory_order_relaxed);
    // Release: the operations come before; pairs with the acquire load in wait_exposure.
    parts_.shared[target].head().completes.fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[target]);
  }
  started_ = false;
  started_targets_.clear();
  return {};
}

Status Window::wait_exposure() {
  std::unique_lock lock(sync_mutex_);
  if (!exposed_)
    return {Code::sync, fmt::format("farsum_wait_exposure: window {}: no farsum_post precedes it", parts_.id)};
  std::atomic<std::uint64_t>& completes = parts_.shared[parts_.my_rank].head().completes;
  // Acquire pairs with the release in complete.
  const auto completed = [&completes, expected = completes_expected_] {
    return completes.load(std::memory_order_acquire) >= expected;
  };
  // Without the mutex: another thread may have to complete an access epoch meanwhile.
  lock.unlock();
  if (!completed()) {
    Status status = parts_.waiter->wait(parts_.waiter->own_events(), completed, "farsum_wait_exposure");
    if (!status.is_ok()) return status;
  }
  lock.lock();
  exposed_ = false;
  return {};
}

Status Window::test_exposure(bool& done) {
  const std::lock_guard lock(sync_mutex_);
  if (!exposed_)
    return {Code::sync, fmt::format("farsum_test_exposure: window {}: no farsum_post precedes it", parts_.id)};
  done = parts_.shared[parts_.my_rank].head().completes.load(std::memory_order_acquire) >= completes_expected_;
  if (!done) return parts_.waiter->looked_in_vain("farsum_test_exposure");
  exposed_ = false;
  return {};
}

// ---- locks ----

Status Window::take_lock(std::uint32_t target, LockMode mode, const char* call) {
  const HolderDead is_dead{parts_.lock_agent.liveness};
  SharedLock<HolderDead> shared_lock(parts_.shared[target].lock(), parts_.shape.ranks, is_dead);
  const std::uint32_t me = parts_.lock_agent.id;
  Status failure;
  const LockResult result =
      shared_lock.lock(me, mode, [&](std::atomic<std::uint32_t>& word, std::uint32_t while_value) {
        failure = parts_.waiter->wait_word(word, while_value, call);
        return failure.is_ok();
      });
  if (result == LockResult::acquired) return {};
  if (result == LockResult::full) return {Code::system, where(call, target) + ": the lock's queue is full"};
  std::string holders;
  shared_lock.for_each_holder([&](std::uint32_t id, LockMode held) {
    if (is_dead(id)) holders += fmt::format("; rank {} of the job died while it held it {}", id - 1, mode_name(held));
  });
  return {failure.code(), fmt::format("{}: {}{}", where(call, target), failure.text(), holders)};
}

Status Window::drop_lock(std::uint32_t target, const char* call) {
  const HolderDead is_dead{parts_.lock_agent.liveness};
  SharedLock<HolderDead> shared_lock(parts_.shared[target].lock(), parts_.shape.ranks, is_dead);
  if (shared_lock.unlock(parts_.lock_agent.id, details_[target].lock_mode)) return {};
  return {Code::system, where(call, target) + ": the lock is not held in shared memory"};
}

Status Window::lock(std::uint32_t target, LockMode mode) {
  {
    const std::lock_guard lock(sync_mutex_);
    if (Status status = check_rank("farsum_lock", target); !status.is_ok()) return status;
    if ((parts_.promises & promise_no_locks) != 0) {
      return {Code::sync, where("farsum_lock", target) + ": the window promises never to be locked (FARSUM_NO_LOCKS)"};
    }
    if (all_locked_ || details_[target].locked) {
      return {Code::sync,
              where("farsum_lock", target) + ": this rank holds that lock already; call farsum_unlock first"};
    }
    if (started_)
      return {Code::sync, where("farsum_lock", target) + ": an epoch of farsum_start is open; complete it first"};
    // The sentences are made only where there is something to say.
    if (closed_ || fence_open_) {
      const std::string what = where("farsum_lock", target);
      if (Status status = refuse_when_closed(what); !status.is_ok()) return status;
      if (Status status = leave_fence(what); !status.is_ok()) return status;
    }
    details_[target].locked = true;
    ++locks_held_;
  }
  // Without the mutex: another thread may have to unlock another target meanwhile.
  Status status = take_lock(target, mode, "farsum_lock");
  const std::lock_guard lock(sync_mutex_);
  if (!status.is_ok()) {
    details_[target].locked = false;
    --locks_held_;
    return status;
  }
  details_[target].lock_mode = mode;
  views_[target].open.fetch_add(passive_epoch, std::memory_order_relaxed);
  return {};
}

Status Window::unlock(std::uint32_t target) {
  if (Status status = check_rank("farsum_unlock", target); !status.is_ok()) return status;
  {
    const std::lock_guard lock(sync_mutex_);
    if (!details_[target].locked || views_[target].open.load(std::memory_order_relaxed) == 0) {
      return {Code::sync, where("farsum_unlock", target) + ": this rank does not hold that lock; farsum_lock takes it"};
    }
  }
  // A failed flush leaves the lock held and the epoch open; the failure has been told, so that the next try ends it.
  if (Status flushed = flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  const std::lock_guard lock(sync_mutex_);
  views_[target].open.fetch_sub(passive_epoch, std::memory_order_relaxed);
  if (Status status = drop_lock(target, "farsum_unlock"); !status.is_ok()) return status;
  details_[target].locked = false;
  --locks_held_;
  return {};
}

Status Window::lock_all() {
  std::unique_lock lock(sync_mutex_);
  const std::string what = fmt::format("farsum_lock_all: window {}", parts_.id);
  if ((parts_.promises & promise_no_locks) != 0)
    return {Code::sync, what + ": the window promises never to be locked (FARSUM_NO_LOCKS)"};
  if (all_locked_ || locks_held_ != 0) return {Code::sync, what + ": this rank holds locks already; unlock them first"};
  if (started_) return {Code::sync, what + ": an epoch of farsum_start is open; complete it first"};
  if (Status status = refuse_when_closed(what); !status.is_ok()) return status;
  if (Status status = leave_fence(what); !status.is_ok()) return status;
  all_locked_ = true;
  // Without the mutex: see lock().
  lock.unlock();
  for (std::uint32_t target = 0; target < size_; ++target) {
    details_[target].lock_mode = LockMode::shared;
    if (Status status = take_lock(target, LockMode::shared, "farsum_lock_all"); !status.is_ok()) {
      while (target-- != 0) (void)drop_lock(target, "farsum_lock_all");
      lock.lock();
      all_locked_ = false;
      return status;
    }
  }
  lock.lock();
  for (std::uint32_t target = 0; target < size_; ++target) {
    views_[target].open.fetch_add(passive_epoch, std::memory_order_relaxed);
  }
  return {};
}

Status Window::unlock_all() {
  const std::lock_guard lock(sync_mutex_);
  if (!all_locked_) {
    return {Code::sync, fmt::format("farsum_unlock_all: window {}: no farsum_lock_all precedes it", parts_.id)};
  }
  if (Status flushed = flush_all("farsum_unlock_all"); !flushed.is_ok()) return flushed;
  for (std::uint32_t target = 0; target < size_; ++target) {
    views_[target].open.fetch_sub(passive_epoch, std::memory_order_relaxed);
    if (Status status = drop_lock(target, "farsum_unlock_all"); !status.is_ok()) return status;
  }
  all_locked_ = false;
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
