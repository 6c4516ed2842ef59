#include "memory/stripes.hpp"

#include <algorithm>
#include <utility>

namespace farsum {

namespace {

// Takes a stripe that was not free at once: it is held, or the stripe is lock-free.
[[gnu::noinline]] Applied take_slow(StripeLock& lock, const LockAgent& agent) {
  const auto is_dead = [&](std::uint32_t holder) { return holder != 0 && rank_is_dead(agent, holder - 1); };
  bool counted = false;
  for (;;) {
    if (lock.is_lock_free()) {
      const Revocation revocation = revoke_stripe(lock, agent.id, permits_of(agent));
      if (revocation == Revocation::not_lock_free) continue;
      return revocation == Revocation::taken ? Applied::done : Applied::busy;
    }
    // Relaxed: a statistic.
    if (agent.contention != nullptr && !std::exchange(counted, true))
      agent.contention->fetch_add(1, std::memory_order_relaxed);
    if (agent.may_wait) {
      if (lock.acquire_slow(agent.id, is_dead)) return Applied::done;
    } else if (lock.try_for_a_while(agent.id)) {
      return Applied::done;
    }
    // Lock-free meanwhile, or its holder is dead, or the caller may not wait.
    const std::uint32_t holder = lock.holder();
    if (lock.is_lock_free() || (agent.may_wait && !is_dead(holder))) continue;
    return is_dead(holder) ? Applied::holder_dead : Applied::busy;
  }
}

Applied take(StripeLock& lock, const LockAgent& agent) {
  return lock.try_acquire(agent.id) ? Applied::done : take_slow(lock, agent);
}

[[gnu::noinline]] Applied take_two(const AtomicDomain& domain, std::uint64_t offset, const LockAgent& agent) {
  StripeLock* first = &domain.lock_of(offset);
  StripeLock* second = &domain.next_lock_of(offset);
  if (second < first) std::swap(first, second);
  const Applied taken = take(*first, agent);
  if (taken != Applied::done || first == second) return taken;
  const Applied both = take(*second, agent);
  if (both != Applied::done) first->release();
  return both;
}

[[gnu::noinline]] void revoke_ahead(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes,
                                    const LockAgent& agent) {
  const std::uint64_t first = domain.stripe_of(offset);
  const std::uint64_t count = domain.stripe_of(offset + bytes - 1) - first + 1;
  const auto stripe_at = [&](std::uint32_t i) -> StripeLock& { return domain.locks[(first + i) & domain.mask]; };
  revoke_stripes<SystemAtomics>(static_cast<std::uint32_t>(std::min<std::uint64_t>(count, most_revoked_together)),
                                stripe_at, agent.id, permits_of(agent));
}

}  // namespace

Applied take_stripe(StripeLock& lock, const LockAgent& agent) { return take(lock, agent); }

Applied take_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes, const LockAgent& agent) {
  if (bytes > domain.bytes_left_in_stripe(offset)) [[unlikely]]
    return take_two(domain, offset, agent);
  return take(domain.lock_of(offset), agent);
}

// The others are looked at only where the first is not free.
Applied take_first_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t run, std::uint64_t left,
                           const LockAgent& agent) {
  if (left <= domain.bytes_left_in_stripe(offset)) return take(domain.lock_of(offset), agent);
  StripeLock& lock = domain.lock_of(offset);
  const bool is_in_one = run <= domain.bytes_left_in_stripe(offset);
  if (is_in_one && lock.try_acquire(agent.id)) return Applied::done;
  if (lock.is_lock_free()) [[unlikely]]
    revoke_ahead(domain, offset, left, agent);
  return take_stripes(domain, offset, run, agent);
}

void release_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes) {
  domain.lock_of(offset).release();
  StripeLock& next = domain.next_lock_of(offset);
  if (bytes > domain.bytes_left_in_stripe(offset) && &next != &domain.lock_of(offset)) [[unlikely]]
    next.release();
}

}  // namespace farsum
