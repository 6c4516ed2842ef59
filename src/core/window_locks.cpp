// Locks: each meets the others in the shared memory of its target's node. An epoch of a lock begins and ends under the
// guard of the lock.
#include <algorithm>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "core/epoch_refusals.hpp"
#include "core/window.hpp"

namespace farsum {
namespace {

const char* mode_name(LockMode mode) { return mode == LockMode::exclusive ? "exclusive" : "shared"; }

// A lock's holders are ranks plus one; a dead one is what everybody waits for in vain.
struct HolderDead {
  const Liveness* liveness = nullptr;
  bool operator()(std::uint32_t id) const { return liveness != nullptr && liveness->is_dead(id - 1); }
};

SharedLock<HolderDead> lock_of(const Window::Parts& parts, std::uint32_t target) {
  return {parts.shared[target].lock(), parts.shape.ranks, HolderDead{parts.lock_agent.liveness}};
}

}  // namespace

// ---- the words of the targets ----

// Plain loads and stores, as those of HotWindow::lock and unlock: the guard orders them.
bool Window::claim(std::uint32_t target, std::int32_t from) {
  std::atomic<std::int32_t>& open = views_[target].open;
  if (open.load(std::memory_order_relaxed) != from) return false;
  open.store(epoch_changing, std::memory_order_relaxed);
  return true;
}

bool Window::claim_under_guard(std::uint32_t target) {
  return lock_of(parts_, target).under_guard(parts_.lock_agent.id, [&] { return claim(target, no_epoch); });
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

Status Window::take_lock(std::uint32_t target, LockMode mode, const char* call) {
  if (lock_of(parts_, target).try_lock(parts_.lock_agent.id, mode)) [[likely]]
    return {};
  return await_lock(target, mode, call);
}

Status Window::await_lock(std::uint32_t target, LockMode mode, const char* call) {
  const HolderDead is_dead{parts_.lock_agent.liveness};
  SharedLock<HolderDead> shared_lock = lock_of(parts_, target);
  Status failure;
  const LockResult result =
      shared_lock.lock(parts_.lock_agent.id, mode, [&](std::atomic<std::uint32_t>& word, std::uint32_t while_value) {
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

Status Window::drop_lock(std::uint32_t target, LockMode mode, const char* call) {
  if (lock_of(parts_, target).unlock(parts_.lock_agent.id, mode)) return {};
  return not_held_in_memory(call, target);
}

Status Window::not_held_in_memory(const char* call, std::uint32_t target) const {
  return {Code::system, where(call, target) + ": the lock is not held in shared memory"};
}

// Ends the epoch of a fence where there is one, waits for the lock, or says why it cannot be. What needs none of these
// is HotWindow::lock.
Status Window::lock(std::uint32_t target, LockMode mode) {
  bool granted = false;
  {
    const std::lock_guard lock(sync_mutex_);
    if (Status status = check_rank("farsum_lock", target); !status.is_ok()) return status;
    const char* why = why_no_lock(target);
    if (why == nullptr) {
      // One visit of the guard for both: whoever waits for it is about to lock, too.
      const std::optional<bool> got =
          lock_of(parts_, target).try_lock(parts_.lock_agent.id, mode, [&] { return claim(target, no_epoch); });
      if (!got) why = held_already;
      granted = got.value_or(false);
    }
    if (why != nullptr) return {Code::sync, fmt::format("{}: {}", where("farsum_lock", target), why)};
  }
  // The target's word is this thread's.
  if (!granted) {
    if (Status status = await_lock(target, mode, "farsum_lock"); !status.is_ok()) {
      close_epoch(target);
      return status;
    }
  }
  // Relaxed: for this thread, or for one that the program orders after it.
  views_[target].open.store(mode == LockMode::exclusive ? locked_exclusive : locked_shared, std::memory_order_relaxed);
  return {};
}

// The target's word is still to be claimed, which fails where another thread is quicker.
const char* Window::why_no_lock(std::uint32_t target) {
  if ((parts_.promises & promise_no_locks) != 0) return no_locks_promised;
  // Without a fence's epoch, and that of start is named below, only a lock's is left.
  if (all_locked_ || (!fence_open_ && !started_ && views_[target].open.load(std::memory_order_relaxed) != no_epoch))
    return held_already;
  if (started_) return start_open;
  if (closed_) return being_freed;
  return leave_fence();
}

Status Window::unlock(std::uint32_t target) {
  if (target >= size_) [[unlikely]]
    return check_rank("farsum_unlock", target);
  const auto not_held = [&]() -> Status {
    return {Code::sync, where("farsum_unlock", target) + ": this rank does not hold that lock; farsum_lock takes it"};
  };
  const std::int32_t open = views_[target].open.load(std::memory_order_relaxed);
  if (open != locked_shared && open != locked_exclusive) [[unlikely]]
    return not_held();
  // A failed flush leaves the lock held and the epoch open; the failure has been told, so that the next try ends it.
  // The next step takes the guard of the lock.
  if (!hot().flush_before_unlock(target)) {
    if (Status flushed = flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  }
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  // Another thread may have given it back meanwhile.
  const std::optional<bool> held =
      lock_of(parts_, target).unlock(parts_.lock_agent.id, mode, [&] { return claim(target, open); });
  if (!held) return not_held();
  if (!*held) return not_held_in_memory("farsum_unlock", target);
  close_epoch(target);
  return {};
}

Status Window::lock_all() {
  {
    const std::lock_guard lock(sync_mutex_);
    if (const char* const why = why_no_lock_all(); why != nullptr) return refuse("farsum_lock_all", why);
    all_locked_ = true;
  }
  // Without the mutex: another thread may have to end another epoch meanwhile.
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (Status status = take_lock(target, LockMode::shared, "farsum_lock_all"); !status.is_ok()) {
      while (target-- != 0) (void)drop_lock(target, LockMode::shared, "farsum_lock_all");
      const std::lock_guard lock(sync_mutex_);
      for (std::uint32_t rank = 0; rank < size_; ++rank) close_epoch(rank);
      all_locked_ = false;
      return status;
    }
  }
  // Relaxed: see lock.
  for (std::uint32_t target = 0; target < size_; ++target)
    views_[target].open.store(locked_with_all, std::memory_order_relaxed);
  return {};
}

// Where it names nothing, the words of all targets are the caller's.
const char* Window::why_no_lock_all() {
  constexpr const char* held = "this rank holds locks already; unlock them first";
  if ((parts_.promises & promise_no_locks) != 0) return no_locks_promised;
  if (all_locked_ || (!fence_open_ && locks_held() != 0)) return held;
  if (started_) return start_open;
  if (closed_) return being_freed;
  if (const char* const why = leave_fence(); why != nullptr) return why;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (claim_under_guard(target)) continue;
    while (target-- != 0) close_epoch(target);
    return held;
  }
  return nullptr;
}

Status Window::unlock_all() {
  const std::lock_guard lock(sync_mutex_);
  if (!all_locked_) return refuse("farsum_unlock_all", "no farsum_lock_all precedes it");
  if (Status flushed = flush_all("farsum_unlock_all"); !flushed.is_ok()) return flushed;
  for (std::uint32_t target = 0; target < size_; ++target) {
    // Relaxed: see lock.
    views_[target].open.store(epoch_changing, std::memory_order_relaxed);
    if (Status status = drop_lock(target, LockMode::shared, "farsum_unlock_all"); !status.is_ok()) return status;
    close_epoch(target);
  }
  all_locked_ = false;
  return {};
}

}  // namespace farsum
