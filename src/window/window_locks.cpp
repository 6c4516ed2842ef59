// Locks: each meets the others in the shared memory of its target's node. An epoch of a lock begins under the guard of
// that lock, and ends there where it is of one target. One of locks that take nothing only begins there too. Locks of
// all by bias (window_bias.cpp) and of other nodes' ranks (window_remote.cpp) begin and end without the guard.
#include <algorithm>
#include <mutex>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "window/epoch_refusals.hpp"
#include "window/window.hpp"
#include "window/window_lock_visit.hpp"

namespace farsum {
namespace {

const char* mode_name(LockMode mode) { return mode == LockMode::exclusive ? "exclusive" : "shared"; }

}  // namespace

// ---- the words of the targets ----

// Plain loads and stores, as those of HotWindow::lock and unlock: the guard orders them.
bool Window::claim(std::uint32_t target, std::int32_t from) {
  std::atomic<std::int32_t>& open = views_[target].open;
  if (open.load(std::memory_order_relaxed) != from) return false;
  open.store(epoch_changing, std::memory_order_relaxed);
  return true;
}

bool Window::claim_for_epoch(std::uint32_t target) {
  return is_here(target) ? claim_under_guard(target) : claim_by_swap(target, no_epoch);
}

bool Window::claim_under_guard(std::uint32_t target) {
  return with_lock(target, [&](auto& lock) {
    return lock.under_guard(parts_.lock_agent.id, [&] { return claim(target, no_epoch); });
  });
}

// Locks that are held, or being taken or given back.
std::uint32_t Window::locks_held() const {
  // Relaxed: a lock that another thread takes meanwhile is refused or refuses by the word itself.
  return static_cast<std::uint32_t>(std::count_if(views_, views_ + size_, [](const TargetView& view) {
    const std::int32_t open = view.open.load(std::memory_order_relaxed);
    return open == epoch_changing || open >= passive_epoch;
  }));
}

// ---- locks ----

// Takes the lock or queues and waits for it.
Status Window::await_lock(std::uint32_t target, LockMode mode, const char* call, std::uint32_t index) {
  const Requested requested = with_lock(
      target,
      [&](auto& lock) {
        return lock.take_or_queue(contender(), mode, parts_.lock_agent.queues_as, [] { return true; });
      },
      index);
  return await_requested(target, requested, call, index);
}

Status Window::await_requested(std::uint32_t target, const Requested& requested, const char* call,
                               std::uint32_t index) {
  if (requested.kind == Requested::Kind::granted) return {};
  if (requested.kind == Requested::Kind::full)
    return {Code::system, texts_.where(call, target) + ": the lock's queue is full"};
  const Liveness* liveness = parts_.lock_agent.liveness;
  Status failure;
  std::string holders;
  const auto wait = [&](LockGrant& grant) {
    failure = parts_.waiter->wait_for_grant(grant, call);
    return failure.is_ok();
  };
  const auto take = [&](auto& lock) {
    const LockResult how = lock.wait(parts_.lock_agent.id, requested.slot, wait);
    if (how != LockResult::gave_up) return how;
    lock.for_each_holder([&](std::uint32_t id, LockMode held) {
      if (HolderDead{liveness}(id))
        holders += fmt::format("; {} while it held it {}", liveness->fate_of(id - 1), mode_name(held));
    });
    return how;
  };
  if (with_lock(target, take, index) == LockResult::acquired) return {};
  return {failure.code(), fmt::format("{}: {}{}", texts_.where(call, target), failure.text(), holders)};
}

Status Window::drop_lock(std::uint32_t target, LockMode mode, const char* call) {
  if (!is_here(target)) {
    Status status = ask_to_end(target, wire::MessageKind::unlock, mode);
    return status.is_ok() ? await_end(target, call) : std::move(status);
  }
  if (with_lock(target, [&](auto& lock) { return lock.unlock(contender(), mode); })) return {};
  return not_held_in_memory(call, target);
}

Status Window::not_held_in_memory(const char* call, std::uint32_t target) const {
  return {Code::system, texts_.where(call, target) + ": the lock is not held in shared memory"};
}

// Ends the epoch of a fence where there is one, waits for the lock, or says why it cannot be. What needs none of these
// is HotWindow::lock.
Status Window::lock(std::uint32_t target, LockMode mode) {
  if (Status status = checks_.rank("farsum_lock", target); !status.is_ok()) return status;
  if (has_asked_locks()) {
    // What is refused waits for nobody.
    if (Status status = check_lockable(target); !status.is_ok()) return status;
    if (Status status = await_asked_locks("farsum_lock"); !status.is_ok()) return status;
  }
  Status status = is_here(target) ? lock_here(target, mode) : lock_remote(target, mode);
  if (!status.is_ok()) return status;
  open_lock(target, mode);
  return {};
}

// The thread was queued by HotWindow::lock.
Status Window::await_queued_lock(std::uint32_t target, LockMode mode, std::uint32_t slot) {
  Status status = await_requested(target, {.kind = Requested::Kind::queued, .slot = slot}, "farsum_lock", 0);
  if (status.is_ok()) {
    open_lock(target, mode);
  } else {
    close_epoch(target);
  }
  return status;
}

void Window::open_lock(std::uint32_t target, LockMode mode) {
  // Relaxed: for this thread, or for one that the program orders after it.
  views_[target].open.store(mode == LockMode::exclusive ? locked_exclusive : locked_shared, std::memory_order_relaxed);
}

Status Window::lock_here(std::uint32_t target, LockMode mode) {
  Requested requested;
  {
    const std::lock_guard lock(sync_mutex_);
    const char* why = why_no_lock(target);
    if (why == nullptr) {
      // One visit of the guard for all: whoever waits for it is about to lock, too.
      requested = with_lock(target, [&](auto& shared_lock) {
        return shared_lock.take_or_queue(contender(), mode, parts_.lock_agent.queues_as,
                                         [&] { return claim(target, no_epoch); });
      });
      if (requested.kind == Requested::Kind::refused) why = held_already;
    }
    if (why != nullptr) return refuse_lock(target, why);
  }
  // The target's word is this thread's.
  Status status = await_requested(target, requested, "farsum_lock", 0);
  if (!status.is_ok()) close_epoch(target);
  return status;
}

Status Window::refuse_lock(std::uint32_t target, const char* why) const {
  return {Code::sync, fmt::format("{}: {}", texts_.where("farsum_lock", target), why)};
}

// Changes nothing.
const char* Window::why_not_lockable(std::uint32_t target) const {
  if ((parts_.promises & promise_no_locks) != 0) return no_locks_promised;
  // Without a fence's epoch, and that of start is named below, only a lock's is left.
  if (all_locked_ || (!fence_open_ && !started_ && views_[target].open.load(std::memory_order_relaxed) != no_epoch))
    return held_already;
  if (started_) return start_open;
  if (closed_) return being_freed;
  return why_fence_stays();
}

Status Window::check_lockable(std::uint32_t target) {
  const std::lock_guard lock(sync_mutex_);
  const char* const why = why_not_lockable(target);
  return why == nullptr ? Status() : refuse_lock(target, why);
}

// The target's word is still to be claimed, which fails where another thread is quicker.
const char* Window::why_no_lock(std::uint32_t target) {
  const char* const why = why_not_lockable(target);
  return why != nullptr ? why : leave_fence();
}

Status Window::unlock(std::uint32_t target) {
  if (target >= size_) [[unlikely]]
    return checks_.rank("farsum_unlock", target);
  const std::int32_t open = views_[target].open.load(std::memory_order_relaxed);
  if (open == unchecked_lock) return unlock_unchecked(target);
  if (open != locked_shared && open != locked_exclusive) [[unlikely]]
    return not_held(target);
  return is_here(target) ? unlock_here(target, open) : unlock_remote(target, open);
}

Status Window::not_held(std::uint32_t target) const {
  return {Code::sync, texts_.where("farsum_unlock", target) + ": this rank does not hold that lock; farsum_lock takes it"};
}

Status Window::unlock_here(std::uint32_t target, std::int32_t open) {
  // A failed flush leaves the lock held and the epoch open; the failure has been told, so that the next try ends it.
  // The next step takes the guard of the lock.
  if (!hot().flush_before_unlock(target)) {
    if (Status flushed = flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  }
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  // Another thread may have given it back meanwhile.
  const std::optional<bool> held = with_lock(
      target, [&](auto& lock) { return lock.unlock(contender(), mode, [&] { return claim(target, open); }); });
  if (!held) return not_held(target);
  close_epoch(target);
  return *held ? Status() : not_held_in_memory("farsum_unlock", target);
}

// ---- locks that take nothing ----

// The epoch begins under the guard, for another thread may be taking the lock. Neither that nor a lock that this thread
// has asked another node for is waited for.
Status Window::lock_unchecked(std::uint32_t target) {
  if (Status status = checks_.rank("farsum_lock", target); !status.is_ok()) return status;
  const std::lock_guard lock(sync_mutex_);
  const char* why = why_no_lock(target);
  if (why == nullptr && !claim_for_epoch(target)) why = held_already;
  if (why != nullptr) return refuse_lock(target, why);
  // Relaxed: see open_lock.
  views_[target].open.store(unchecked_lock, std::memory_order_relaxed);
  return {};
}

// A failed flush leaves the epoch open, as in unlock_here.
Status Window::unlock_unchecked(std::uint32_t target) {
  if (Status flushed = flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  if (!claim_by_swap(target, unchecked_lock)) return not_held(target);
  close_epoch(target);
  return {};
}

Status Window::lock_all_unchecked() {
  const std::lock_guard lock(sync_mutex_);
  if (const char* const why = why_no_lock_all(); why != nullptr) return texts_.refuse("farsum_lock_all", why);
  all_locked_ = true;
  for (std::uint32_t target = 0; target < size_; ++target)
    views_[target].open.store(unchecked_with_all, std::memory_order_relaxed);
  return {};
}

// Called with sync_mutex_ held.
Status Window::unlock_all_unchecked() {
  if (Status flushed = flush_all("farsum_unlock_all"); !flushed.is_ok()) return flushed;
  for (std::uint32_t target = 0; target < size_; ++target) close_epoch(target);
  all_locked_ = false;
  return {};
}

// ---- locks of all ----

namespace {

constexpr const char* others_held = "this rank holds locks already; unlock them first";

}  // namespace

Status Window::lock_all() {
  if (has_asked_locks()) {
    if (Status status = check_all_lockable(); !status.is_ok()) return status;
    if (Status status = await_asked_locks("farsum_lock_all"); !status.is_ok()) return status;
  }
  std::uint32_t taken = size_;
  {
    const std::lock_guard lock(sync_mutex_);
    const char* why = make_way_for_all();
    if (why == nullptr && hold_all_by_bias()) return {};
    if (why == nullptr) why = lock_what_is_free(taken);
    if (why != nullptr) return texts_.refuse("farsum_lock_all", why);
    all_locked_ = true;
  }
  // It locks without the mutex: another thread may have to end another epoch meanwhile.
  Status status;
  if (taken != size_ || !remote_targets_.empty()) status = lock_the_rest(taken, "farsum_lock_all");
  if (status.is_ok()) {
    offer_bias_at_times();
  } else {
    const std::lock_guard lock(sync_mutex_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) close_epoch(rank);
    all_locked_ = false;
  }
  return status;
}

// Claims the words of all targets, and locks those of this node that are free in the same visits, from this rank's own
// on, so that ranks which do so at once are not all at one guard. `taken` becomes the lowest that was not free. Where
// it says why not, nothing has changed.
const char* Window::lock_what_is_free(std::uint32_t& taken) {
  for (std::uint32_t i = 0; i < size_; ++i) {
    const std::uint32_t target = after_mine(i);
    const std::optional<bool> granted = claim_and_try(target);
    if (!granted) {
      while (i-- != 0) {
        if (holds_with_all(after_mine(i))) give_back_target(after_mine(i), "farsum_lock_all");
        close_epoch(after_mine(i));
      }
      return others_held;
    }
    // Relaxed, here and below: see open_lock.
    if (*granted) views_[target].open.store(locked_with_all, std::memory_order_relaxed);
    if (!*granted && is_here(target)) taken = std::min(taken, target);
  }
  return nullptr;
}

// The i-th target from this rank on.
std::uint32_t Window::after_mine(std::uint32_t i) const {
  const std::uint32_t target = parts_.my_rank + i;
  return target < size_ ? target : target - size_;
}

// Whether the lock was free; nothing where the target's word is another epoch's. A rank of another node has yet to be
// asked.
std::optional<bool> Window::claim_and_try(std::uint32_t target) {
  if (!is_here(target)) return claim_by_swap(target, no_epoch) ? std::optional(false) : std::nullopt;
  return with_lock(target, [&](auto& lock) {
    return lock.try_lock(contender(), LockMode::shared, [&] { return claim(target, no_epoch); });
  });
}

// Holds all or none in the end, and queues for none while it holds a higher one: of two ranks that queue while they
// hold what comes behind it, each could wait for the other, with third ranks' exclusive locks between them. So what
// was taken is waited for in the order of ranks, and what comes behind it is given back before.
Status Window::lock_the_rest(std::uint32_t taken, const char* call) {
  for (;;) {
    Status status;
    if (taken != size_) {
      give_back_targets(taken, call);
      status = wait_for_target(taken, call);
      taken = size_;
    }
    if (status.is_ok()) status = lock_free_targets(taken, call);
    if (status.is_ok() && taken == size_) return {};
    if (!status.is_ok()) {
      give_back_targets(0, call);
      return status;
    }
  }
}

// Takes the locks that are not held yet. All owners are asked at once, but none lets the request queue; `taken` becomes
// the lowest that is not to be had.
Status Window::lock_free_targets(std::uint32_t& taken, const char* call) {
  Status failure;
  auto asked_end = remote_targets_.begin();
  for (; asked_end != remote_targets_.end(); ++asked_end) {
    if (holds_with_all(*asked_end)) continue;
    failure = ask_at_once(*asked_end, call);
    if (!failure.is_ok()) break;
  }
  for (std::uint32_t target = 0; target < size_ && taken == size_ && failure.is_ok(); ++target) {
    if (!is_here(target) || holds_with_all(target)) continue;
    if (with_lock(target, [&](auto& lock) { return lock.try_lock(contender(), LockMode::shared); })) {
      views_[target].open.store(locked_with_all, std::memory_order_relaxed);
    } else {
      taken = target;
    }
  }
  for (auto asked = remote_targets_.begin(); asked != asked_end; ++asked) {
    const std::uint32_t target = *asked;
    if (holds_with_all(target)) continue;
    Status status = await_answer(target, details_[target].granted, call);
    if (status.is_ok()) {
      views_[target].open.store(locked_with_all, std::memory_order_relaxed);
    } else if (status.code() == Code::pending) {
      taken = std::min(taken, target);
    } else {
      // The owner remembers a lock that it refused until it is given back.
      (void)drop_lock(target, LockMode::shared, call);
      if (failure.is_ok()) failure = std::move(status);
    }
  }
  return failure;
}

// The answers of those that were asked before are still to be awaited: it throws nothing.
Status Window::ask_at_once(std::uint32_t target, const char* call) {
  try {
    return ask(target, wire::MessageKind::lock, LockMode::shared, details_[target].granted, wire::flag_at_once);
  } catch (const std::bad_alloc&) {
    return {Code::no_memory, texts_.where(call, target) + ": there was no memory left to ask for its lock"};
  }
}

Status Window::wait_for_target(std::uint32_t target, const char* call) {
  Status status;
  if (is_here(target)) {
    status = await_lock(target, LockMode::shared, call);
  } else {
    RequestState& granted = details_[target].granted;
    status = ask(target, wire::MessageKind::lock, LockMode::shared, granted);
    if (!status.is_ok()) return status;
    status = await_answer(target, granted, call);
    if (!status.is_ok()) (void)drop_lock(target, LockMode::shared, call);
  }
  if (status.is_ok()) views_[target].open.store(locked_with_all, std::memory_order_relaxed);
  return status;
}

bool Window::holds_with_all(std::uint32_t target) const {
  return views_[target].open.load(std::memory_order_relaxed) == locked_with_all;
}

void Window::give_back_target(std::uint32_t target, const char* call) {
  views_[target].open.store(epoch_changing, std::memory_order_relaxed);
  (void)drop_lock(target, LockMode::shared, call);
}

// Gives back what lock_all holds, from `first` on.
void Window::give_back_targets(std::uint32_t first, const char* call) {
  for (std::uint32_t target = first; target < size_; ++target) {
    if (holds_with_all(target)) give_back_target(target, call);
  }
}

// Changes nothing.
const char* Window::why_not_all_lockable() const {
  if ((parts_.promises & promise_no_locks) != 0) return no_locks_promised;
  if (all_locked_ || (!fence_open_ && locks_held() != 0)) return others_held;
  if (started_) return start_open;
  if (closed_) return being_freed;
  return why_fence_stays();
}

Status Window::check_all_lockable() {
  const std::lock_guard lock(sync_mutex_);
  const char* const why = why_not_all_lockable();
  return why == nullptr ? Status() : texts_.refuse("farsum_lock_all", why);
}

// Ends the epoch of a fence where there is one; the words of the targets are still to be claimed.
const char* Window::make_way_for_all() {
  const char* const why = why_not_all_lockable();
  return why != nullptr ? why : leave_fence();
}

// Where it names nothing, the words of all targets are the caller's.
const char* Window::why_no_lock_all() {
  if (const char* const why = make_way_for_all(); why != nullptr) return why;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (claim_for_epoch(target)) continue;
    while (target-- != 0) close_epoch(target);
    return others_held;
  }
  return nullptr;
}

Status Window::unlock_all() {
  const std::lock_guard lock(sync_mutex_);
  if (!all_locked_) return texts_.refuse("farsum_unlock_all", "no farsum_lock_all precedes it");
  // All targets are as the first is.
  if (views_[0].open.load(std::memory_order_relaxed) == unchecked_with_all) return unlock_all_unchecked();
  constexpr const char* call = "farsum_unlock_all";
  if (bias_epoch_ != 0) return unlock_all_by_bias(call);
  const auto is_held = [this](std::uint32_t target) { return holds_with_all(target); };
  // Ranks of other nodes are all asked before one is waited for. One that could not be asked stays locked, for another
  // try.
  settle_cards(call);
  Status first;
  for (const std::uint32_t target : remote_targets_) {
    if (!is_held(target) || !first.is_ok()) continue;
    if (first = ask_to_end(target, wire::MessageKind::unlock, LockMode::shared); first.is_ok())
      views_[target].open.store(epoch_changing, std::memory_order_relaxed);
  }
  for (const std::uint32_t target : remote_targets_) {
    if (views_[target].open.load(std::memory_order_relaxed) != epoch_changing) continue;
    Status status = await_end(target, call);
    close_epoch(target);
    if (first.is_ok()) first = std::move(status);
  }
  if (Status flushed = flush_all(call); !flushed.is_ok()) return first.is_ok() ? std::move(flushed) : std::move(first);
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (!is_here(target) || !is_held(target)) continue;
    // Relaxed: see open_lock.
    views_[target].open.store(epoch_changing, std::memory_order_relaxed);
    Status status = drop_lock(target, LockMode::shared, call);
    close_epoch(target);
    if (first.is_ok()) first = std::move(status);
  }
  all_locked_ = std::any_of(remote_targets_.begin(), remote_targets_.end(), is_held);
  return first;
}

// ---- mutexes ----

namespace {

// The locks of mutexes come behind the window's own.
std::uint32_t lock_of_mutex(std::uint32_t index) { return index + 1; }

}  // namespace

Status Window::lock_mutex(std::uint32_t target, std::uint32_t index) {
  constexpr const char* call = "waiting for a mutex";
  if (has_asked_locks()) {
    if (Status status = await_asked_locks(call); !status.is_ok()) return status;
  }
  if (is_here(target)) return await_lock(target, LockMode::exclusive, call, lock_of_mutex(index));
  return ask_of_mutex(target, wire::MessageKind::lock, lock_of_mutex(index), call);
}

Status Window::unlock_mutex(std::uint32_t target, std::uint32_t index) {
  constexpr const char* call = "giving a mutex back";
  if (!is_here(target)) return ask_of_mutex(target, wire::MessageKind::unlock, lock_of_mutex(index), call);
  const auto give_back = [&](auto& lock) { return lock.unlock(contender(), LockMode::exclusive); };
  return with_lock(target, give_back, lock_of_mutex(index)) ? Status() : not_held_in_memory(call, target);
}

}  // namespace farsum
