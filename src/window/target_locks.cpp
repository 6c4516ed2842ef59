#include "window/target_locks.hpp"

#include <new>
#include <optional>

#include <fmt/format.h>

namespace farsum {

bool TargetLocks::claim(std::uint32_t target) {
  if (!needs_.local.has(target)) return needs_.words.claim_by_swap(target, no_epoch);
  return needs_.local.visit(target, [&](auto& lock) {
    return lock.under_guard(needs_.local.agent().id, [&] { return needs_.words.claim(target, no_epoch); });
  });
}

Status TargetLocks::drop(std::uint32_t target, LockMode mode, const char* call) {
  if (needs_.local.has(target)) return needs_.local.give_back(target, mode, call);
  Status status = needs_.completions.ask_to_end(target, wire::MessageKind::unlock, mode);
  return status.is_ok() ? needs_.completions.await_end(target, call) : std::move(status);
}

// The lock of another node whose owner cannot be told, for want of memory, goes with the window.
void TargetLocks::abandon(std::uint32_t target, const char* call) noexcept {
  const std::int32_t open = needs_.words.of(target);
  try {
    if (open >= passive_epoch && open < unchecked_lock)
      (void)drop(target, open == locked_exclusive ? LockMode::exclusive : LockMode::shared, call);
  } catch (const std::bad_alloc&) {
    // The other ranks wait for this one, whatever it leaves undone.
  }
  needs_.remote.end(target);
  needs_.words.close(target);
}

Status TargetLocks::refuse(std::uint32_t target, const char* why) const {
  return {Code::sync, fmt::format("{}: {}", needs_.texts.where("farsum_lock", target), why)};
}

Status TargetLocks::not_held(std::uint32_t target) const {
  return {Code::sync,
          needs_.texts.where("farsum_unlock", target) + ": this rank does not hold that lock; farsum_lock takes it"};
}

// ---- lock ----

Status TargetLocks::lock(std::uint32_t target, LockMode mode) {
  if (Status status = needs_.checks.rank("farsum_lock", target); !status.is_ok()) return status;
  if (needs_.remote.has_asked()) {
    // What is refused waits for nobody.
    if (Status status = check_lockable(target); !status.is_ok()) return status;
    if (Status status = needs_.remote.await_asked("farsum_lock"); !status.is_ok()) return status;
  }
  Status status = needs_.local.has(target) ? lock_here(target, mode) : lock_remote(target, mode);
  if (!status.is_ok()) return status;
  open(target, mode);
  return {};
}

Status TargetLocks::check_lockable(std::uint32_t target) {
  const MutexGuard lock(needs_.rules.mutex());
  const char* const why = needs_.rules.why_not(EpochCall::lock, target);
  return why == nullptr ? Status() : refuse(target, why);
}

Status TargetLocks::await_queued(std::uint32_t target, LockMode mode, std::uint32_t slot) {
  Status status = needs_.local.await(target, {.kind = Requested::Kind::queued, .slot = slot}, "farsum_lock");
  if (status.is_ok()) {
    open(target, mode);
  } else {
    needs_.words.close(target);
  }
  return status;
}

Status TargetLocks::lock_here(std::uint32_t target, LockMode mode) {
  Requested requested;
  {
    const MutexGuard lock(needs_.rules.mutex());
    const char* why = needs_.rules.make_way(EpochCall::lock, target);
    if (why == nullptr) {
      // One visit of the guard for all: whoever waits for it is about to lock, too.
      requested = needs_.local.take_or_queue(target, mode, [&] { return needs_.words.claim(target, no_epoch); });
      if (requested.kind == Requested::Kind::refused) why = epoch_says::held_already;
    }
    if (why != nullptr) return refuse(target, why);
  }
  // The target's word is this thread's.
  Status status = needs_.local.await(target, requested, "farsum_lock");
  if (!status.is_ok()) needs_.words.close(target);
  return status;
}

Status TargetLocks::lock_remote(std::uint32_t target, LockMode mode) {
  {
    const MutexGuard lock(needs_.rules.mutex());
    const char* why = needs_.rules.make_way(EpochCall::lock, target);
    if (why == nullptr && !needs_.words.claim_by_swap(target, no_epoch)) why = epoch_says::held_already;
    if (why != nullptr) return refuse(target, why);
  }
  try {
    Status status = needs_.remote.ask(target, mode);
    if (!status.is_ok()) needs_.words.close(target);
    return status;
  } catch (const std::bad_alloc&) {
    needs_.words.close(target);
    throw;
  }
}

// ---- unlock ----

Status TargetLocks::unlock(std::uint32_t target) {
  if (target >= needs_.words.size()) [[unlikely]]
    return needs_.checks.rank("farsum_unlock", target);
  const std::int32_t open = needs_.words.of(target);
  if (open == unchecked_lock) return unlock_unchecked(target);
  if (open != locked_shared && open != locked_exclusive) [[unlikely]]
    return not_held(target);
  return needs_.local.has(target) ? unlock_here(target, open) : unlock_remote(target, open);
}

Status TargetLocks::unlock_here(std::uint32_t target, std::int32_t open) {
  // A failed flush leaves the lock held and the epoch open; the failure has been told, so that the next try ends it.
  // The next step takes the guard of the lock.
  if (!needs_.hot.flush_before_unlock(target)) {
    if (Status flushed = needs_.completions.flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  }
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  // Another thread may have given it back meanwhile.
  const std::optional<bool> held = needs_.local.visit(target, [&](auto& lock) {
    return lock.unlock(needs_.local.contender(), mode, [&] { return needs_.words.claim(target, open); });
  });
  if (!held) return not_held(target);
  needs_.words.close(target);
  return *held ? Status() : needs_.local.not_held("farsum_unlock", target);
}

// A failed operation does not keep the lock: its end was under way with the operation.
Status TargetLocks::unlock_remote(std::uint32_t target, std::int32_t open) {
  if (!needs_.words.claim_by_swap(target, open)) return not_held(target);
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  if (Status status = needs_.completions.ask_to_end(target, wire::MessageKind::unlock, mode); !status.is_ok()) {
    needs_.words.set(target, open);
    return status;
  }
  Status status = needs_.completions.await_end(target, "farsum_unlock");
  needs_.remote.end(target);
  needs_.words.close(target);
  return status;
}

// ---- locks that take nothing ----

// The epoch begins under the guard, for another thread may be taking the lock. Neither that nor a lock that this thread
// has asked another node for is waited for.
Status TargetLocks::lock_unchecked(std::uint32_t target) {
  if (Status status = needs_.checks.rank("farsum_lock", target); !status.is_ok()) return status;
  const MutexGuard lock(needs_.rules.mutex());
  const char* why = needs_.rules.make_way(EpochCall::lock, target);
  if (why == nullptr && !claim(target)) why = epoch_says::held_already;
  if (why != nullptr) return refuse(target, why);
  needs_.words.set(target, unchecked_lock);
  return {};
}

// A failed flush leaves the epoch open, as in unlock_here.
Status TargetLocks::unlock_unchecked(std::uint32_t target) {
  if (Status flushed = needs_.completions.flush(target, "farsum_unlock"); !flushed.is_ok()) return flushed;
  if (!needs_.words.claim_by_swap(target, unchecked_lock)) return not_held(target);
  needs_.words.close(target);
  return {};
}

// ---- mutexes ----

namespace {

// The locks of mutexes come behind the window's own.
std::uint32_t lock_of_mutex(std::uint32_t index) { return index + 1; }

}  // namespace

Status TargetLocks::lock_mutex(std::uint32_t target, std::uint32_t index) {
  constexpr const char* call = "waiting for a mutex";
  if (needs_.remote.has_asked()) {
    if (Status status = needs_.remote.await_asked(call); !status.is_ok()) return status;
  }
  if (needs_.local.has(target)) return needs_.local.take(target, LockMode::exclusive, call, lock_of_mutex(index));
  return needs_.remote.ask_of_mutex(target, wire::MessageKind::lock, lock_of_mutex(index), call);
}

Status TargetLocks::unlock_mutex(std::uint32_t target, std::uint32_t index) {
  constexpr const char* call = "giving a mutex back";
  if (needs_.local.has(target)) return needs_.local.give_back(target, LockMode::exclusive, call, lock_of_mutex(index));
  return needs_.remote.ask_of_mutex(target, wire::MessageKind::unlock, lock_of_mutex(index), call);
}

}  // namespace farsum
