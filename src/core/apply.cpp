#include "core/apply.hpp"

#include <utility>

#include "ops/atomics.hpp"
#include "ops/long_moves.hpp"

namespace farsum {

Reduction make_reduction(const ops::KernelSet& kernels, ops::ElementType type, ops::Operator op, const void* alpha,
                         std::uint64_t bytes) {
  Reduction reduction{type, op, alpha, kernels.bulk(type, op), kernels.fetch(type, op)};
  if (bytes >= ops::long_move_bytes) [[unlikely]] {
    if (const auto bulk = ops::long_bulk(type, op); bulk != nullptr) reduction.bulk = bulk;
    if (const auto fetch = ops::long_fetch(type, op); fetch != nullptr) reduction.fetch = fetch;
  }
  return reduction;
}

namespace {

// A holder keeps a stripe for under a microsecond unless it was preempted, so a short look nearly always succeeds, also
// against a caller that takes the lock again and again.
bool try_for_a_while(StripeLock& lock, std::uint32_t me) {
  constexpr int tries = 512;
  for (int attempt = 0; attempt < tries; ++attempt) {
    if (lock.holder() == 0 && lock.try_acquire(me)) return true;
    SystemAtomics::pause();
  }
  return false;
}

}  // namespace

namespace {

Applied take(StripeLock& lock, const LockAgent& agent) {
  if (lock.try_acquire(agent.id)) return Applied::done;
  // Relaxed: a statistic.
  if (agent.contention != nullptr) agent.contention->fetch_add(1, std::memory_order_relaxed);
  const auto is_dead = [&](std::uint32_t holder) {
    return agent.liveness != nullptr && holder != 0 && agent.liveness->is_dead(holder - 1);
  };
  if (!agent.may_wait) {
    if (try_for_a_while(lock, agent.id)) return Applied::done;
    return is_dead(lock.holder()) ? Applied::holder_dead : Applied::busy;
  }
  return lock.acquire_slow(agent.id, is_dead) ? Applied::done : Applied::holder_dead;
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

}  // namespace

Applied take_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes, const LockAgent& agent) {
  if (bytes > domain.bytes_left_in_stripe(offset)) [[unlikely]]
    return take_two(domain, offset, agent);
  return take(domain.lock_of(offset), agent);
}

void release_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes) {
  domain.lock_of(offset).release();
  StripeLock& next = domain.next_lock_of(offset);
  if (bytes > domain.bytes_left_in_stripe(offset) && &next != &domain.lock_of(offset)) [[unlikely]]
    next.release();
}

namespace {

void apply_bare(std::byte* memory, std::uint64_t offset, const std::byte* operand, std::byte* result,
                std::uint64_t bytes, const Reduction& reduction) {
  const std::uint64_t size = reduction.element_bytes();
  for (std::uint64_t done = 0; done < bytes; done += size) {
    ops::atomic_apply(memory + offset + done, operand == nullptr ? nullptr : operand + done,
                      result == nullptr ? nullptr : result + done, reduction.type, reduction.op, reduction.alpha);
  }
}

}  // namespace

Applied apply_reduction(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory, std::uint64_t offset,
                        const std::byte* operand, std::byte* result, std::uint64_t bytes, const Reduction& reduction,
                        std::uint64_t& progress) {
  if (domain.bare) {
    apply_bare(memory, offset, operand, result, bytes, reduction);
    progress = bytes;
    return Applied::done;
  }
  const std::uint64_t size = reduction.element_bytes();
  while (progress < bytes) {
    const std::uint64_t at = offset + progress;
    const std::uint64_t run = domain.run_bytes(at, bytes - progress, size);
    const Applied taken = take_stripes(domain, at, run, agent);
    if (taken != Applied::done) return taken;
    const std::byte* from = operand == nullptr ? nullptr : operand + progress;
    if (result == nullptr) {
      reduction.bulk(memory + at, from, run / size, reduction.alpha);
    } else {
      reduction.fetch(memory + at, from, result + progress, run / size, reduction.alpha);
    }
    release_stripes(domain, at, run);
    progress += run;
  }
  return Applied::done;
}

Applied apply_compare_and_swap(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory,
                               std::uint64_t offset, const std::byte* expected, const std::byte* desired,
                               std::byte* result, ops::ElementType type) {
  if (domain.bare) {
    ops::atomic_compare_and_swap(memory + offset, expected, desired, result, type);
    return Applied::done;
  }
  const std::uint64_t size = ops::size_of(type);
  const Applied taken = take_stripes(domain, offset, size, agent);
  if (taken != Applied::done) return taken;
  ops::plain_compare_and_swap(memory + offset, expected, desired, result, type);
  release_stripes(domain, offset, size);
  return Applied::done;
}

}  // namespace farsum
