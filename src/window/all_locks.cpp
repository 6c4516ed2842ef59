#include "window/all_locks.hpp"

#include <algorithm>

namespace farsum {

// ---- lock_all ----

Status AllLocks::lock() {
  constexpr const char* call = "farsum_lock_all";
  if (needs_.remote.has_asked()) {
    if (Status status = check_lockable(); !status.is_ok()) return status;
    if (Status status = needs_.remote.await_asked(call); !status.is_ok()) return status;
  }
  std::uint32_t taken = size();
  {
    const MutexGuard lock(needs_.rules.mutex());
    const char* why = needs_.rules.make_way(EpochCall::lock_all);
    const bool is_held = why == nullptr && needs_.biased.hold();
    if (why == nullptr && !is_held) why = lock_what_is_free(taken);
    if (why != nullptr) return needs_.texts.refuse(call, why);
    needs_.rules.enter(EpochCall::lock_all);
    if (is_held) return {};
  }
  // It locks without the mutex: another thread may have to end another epoch meanwhile.
  Status status;
  if (taken != size() || !needs_.remote_targets.empty()) status = lock_the_rest(taken, call);
  if (status.is_ok()) {
    needs_.biased.note_locked_one_by_one();
  } else {
    const MutexGuard lock(needs_.rules.mutex());
    for (std::uint32_t rank = 0; rank < size(); ++rank) needs_.words.close(rank);
    needs_.rules.enter(EpochCall::unlock_all);
  }
  return status;
}

Status AllLocks::check_lockable() {
  const MutexGuard lock(needs_.rules.mutex());
  const char* const why = needs_.rules.why_not(EpochCall::lock_all);
  return why == nullptr ? Status() : needs_.texts.refuse("farsum_lock_all", why);
}

// Claims the words of all targets, and locks those of this node that are free in the same visits, from this rank's own
// on, so that ranks which do so at once are not all at one guard. `taken` becomes the lowest that was not free. Where
// it says why not, nothing has changed.
const char* AllLocks::lock_what_is_free(std::uint32_t& taken) {
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t target = after_mine(i);
    const std::optional<bool> granted = claim_and_try(target);
    if (!granted) {
      while (i-- != 0) {
        if (needs_.words.is_with_all(after_mine(i))) give_back_target(after_mine(i), "farsum_lock_all");
        needs_.words.close(after_mine(i));
      }
      return epoch_says::others_held;
    }
    if (*granted) needs_.words.set(target, locked_with_all);
    if (!*granted && needs_.local.has(target)) taken = std::min(taken, target);
  }
  return nullptr;
}

// Whether the lock was free; nothing where the target's word is another epoch's. A rank of another node has yet to be
// asked.
std::optional<bool> AllLocks::claim_and_try(std::uint32_t target) {
  if (!needs_.local.has(target))
    return needs_.words.claim_by_swap(target, no_epoch) ? std::optional(false) : std::nullopt;
  return needs_.local.visit(target, [&](auto& lock) {
    return lock.try_lock(needs_.local.contender(), LockMode::shared,
                         [&] { return needs_.words.claim(target, no_epoch); });
  });
}

// Holds all or none in the end, and queues for none while it holds a higher one: of two ranks that queue while they
// hold what comes behind it, each could wait for the other, with third ranks' exclusive locks between them. So what
// was taken is waited for in the order of ranks, and what comes behind it is given back before.
Status AllLocks::lock_the_rest(std::uint32_t taken, const char* call) {
  for (;;) {
    Status status;
    if (taken != size()) {
      give_back_from(taken, call);
      status = wait_for_target(taken, call);
      taken = size();
    }
    if (status.is_ok()) status = lock_free_targets(taken, call);
    if (status.is_ok() && taken == size()) return {};
    if (!status.is_ok()) {
      give_back_from(0, call);
      return status;
    }
  }
}

// Takes the locks that are not held yet. All owners are asked at once, but none lets the request queue; `taken` becomes
// the lowest that is not to be had.
Status AllLocks::lock_free_targets(std::uint32_t& taken, const char* call) {
  Status failure;
  auto asked_end = needs_.remote_targets.begin();
  for (; asked_end != needs_.remote_targets.end(); ++asked_end) {
    if (needs_.words.is_with_all(*asked_end)) continue;
    failure = needs_.remote.ask_at_once(*asked_end, call);
    if (!failure.is_ok()) break;
  }
  for (std::uint32_t target = 0; target < size() && taken == size() && failure.is_ok(); ++target) {
    if (!needs_.local.has(target) || needs_.words.is_with_all(target)) continue;
    const bool is_free = needs_.local.visit(
        target, [&](auto& lock) { return lock.try_lock(needs_.local.contender(), LockMode::shared); });
    if (is_free) {
      needs_.words.set(target, locked_with_all);
    } else {
      taken = target;
    }
  }
  for (auto asked = needs_.remote_targets.begin(); asked != asked_end; ++asked) {
    if (needs_.words.is_with_all(*asked)) continue;
    Status status = await_asked_at_once(*asked, taken, call);
    if (failure.is_ok()) failure = std::move(status);
  }
  return failure;
}

Status AllLocks::await_asked_at_once(std::uint32_t target, std::uint32_t& taken, const char* call) {
  Status status = needs_.remote.await_granted(target, call);
  if (status.is_ok()) {
    needs_.words.set(target, locked_with_all);
  } else if (status.code() == Code::pending) {
    taken = std::min(taken, target);
    return {};
  } else {
    // The owner remembers a lock that it refused until it is given back.
    (void)needs_.locks.drop(target, LockMode::shared, call);
  }
  return status;
}

Status AllLocks::wait_for_target(std::uint32_t target, const char* call) {
  Status status;
  if (needs_.local.has(target)) {
    status = needs_.local.take(target, LockMode::shared, call);
  } else {
    status = needs_.remote.ask_in_turn(target, call);
    if (!status.is_ok()) return status;
    status = needs_.remote.await_granted(target, call);
    if (!status.is_ok()) (void)needs_.locks.drop(target, LockMode::shared, call);
  }
  if (status.is_ok()) needs_.words.set(target, locked_with_all);
  return status;
}

void AllLocks::give_back_target(std::uint32_t target, const char* call) {
  needs_.words.set(target, epoch_changing);
  (void)needs_.locks.drop(target, LockMode::shared, call);
}

// Gives back what is held, from `first` on.
void AllLocks::give_back_from(std::uint32_t first, const char* call) {
  for (std::uint32_t target = first; target < size(); ++target) {
    if (needs_.words.is_with_all(target)) give_back_target(target, call);
  }
}

Status AllLocks::lock_unchecked() {
  const MutexGuard lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.make_way(EpochCall::lock_all); why != nullptr)
    return needs_.texts.refuse("farsum_lock_all", why);
  for (std::uint32_t target = 0; target < size(); ++target) {
    if (needs_.locks.claim(target)) continue;
    while (target-- != 0) needs_.words.close(target);
    return needs_.texts.refuse("farsum_lock_all", epoch_says::others_held);
  }
  needs_.rules.enter(EpochCall::lock_all);
  for (std::uint32_t target = 0; target < size(); ++target) needs_.words.set(target, unchecked_with_all);
  return {};
}

// ---- unlock_all ----

Status AllLocks::unlock() {
  constexpr const char* call = "farsum_unlock_all";
  const MutexGuard lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.why_not(EpochCall::unlock_all); why != nullptr)
    return needs_.texts.refuse(call, why);
  // All targets are as the first is.
  if (needs_.words.of(0) == unchecked_with_all) return unlock_unchecked();
  if (needs_.biased.are_held()) return unlock_by_bias(call);
  Status first = unlock_remote(call);
  if (Status flushed = needs_.completions.flush_all(call); !flushed.is_ok())
    return first.is_ok() ? std::move(flushed) : std::move(first);
  Status here = unlock_here(call);
  if (first.is_ok()) first = std::move(here);
  const bool is_one_held = std::any_of(needs_.remote_targets.begin(), needs_.remote_targets.end(),
                                       [this](std::uint32_t target) { return needs_.words.is_with_all(target); });
  if (!is_one_held) needs_.rules.enter(EpochCall::unlock_all);
  return first;
}

// They are all asked before one is waited for. One that could not be asked stays locked, for another try.
Status AllLocks::unlock_remote(const char* call) {
  needs_.completions.settle_cards(call);
  Status first;
  for (const std::uint32_t target : needs_.remote_targets) {
    if (!needs_.words.is_with_all(target) || !first.is_ok()) continue;
    first = needs_.completions.ask_to_end(target, wire::MessageKind::unlock, LockMode::shared);
    if (first.is_ok()) needs_.words.set(target, epoch_changing);
  }
  for (const std::uint32_t target : needs_.remote_targets) {
    if (needs_.words.of(target) != epoch_changing) continue;
    Status status = needs_.completions.await_end(target, call);
    needs_.words.close(target);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

Status AllLocks::unlock_here(const char* call) {
  Status first;
  for (std::uint32_t target = 0; target < size(); ++target) {
    if (!needs_.local.has(target) || !needs_.words.is_with_all(target)) continue;
    needs_.words.set(target, epoch_changing);
    Status status = needs_.local.give_back(target, LockMode::shared, call);
    needs_.words.close(target);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

Status AllLocks::unlock_unchecked() {
  if (Status flushed = needs_.completions.flush_all("farsum_unlock_all"); !flushed.is_ok()) return flushed;
  for (std::uint32_t target = 0; target < size(); ++target) needs_.words.close(target);
  needs_.rules.enter(EpochCall::unlock_all);
  return {};
}

// A failed flush leaves the locks held, as in TargetLocks::unlock_here.
Status AllLocks::unlock_by_bias(const char* call) {
  if (!needs_.hot.flush_all_before_unlock()) {
    if (Status flushed = needs_.completions.flush_all(call); !flushed.is_ok()) return flushed;
  }
  needs_.biased.drop();
  needs_.rules.enter(EpochCall::unlock_all);
  return {};
}

}  // namespace farsum
