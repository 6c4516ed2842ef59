// Single elements beside bulk, without a lock for the former: in a stripe that is lock-free, elements are updated by
// the processor's own atomics under a permit, which costs two plain stores; whoever needs the stripe for more revokes
// that.
//
// The stripe's lock word says which of the two it is, so that who takes the lock finds out by failing to. A permit is a
// word of one thread, in which it says what stripe it is in. To go in it writes that, and then looks whether the stripe
// is lock-free. Who revokes that takes the lock word, and then looks at all permits until none is in the stripe. Each
// writes one word and then reads the other's, so that one of the two must see the other, if no read overtakes a write:
// the revoker, who is rare, sees to it for both sides by a barrier in all processes (os/process_barrier.hpp), and what
// is left for the permit is that the compiler keeps the order. tests/lockfree/lock_free_permit_model_test.cpp goes
// through every interleaving of this code on total store order, and shows that it fails without that barrier.
//
// A crash: a permit that was killed inside stays inside; its update is an atomic instruction, done or not. The revoker
// asks is_dead and goes on. A revoker that was killed holds the lock, as any other holder.
#pragma once

#include <cstdint>

#include "lockfree/stripe_lock.hpp"

namespace farsum {

// Zeroed memory is a permit that nobody uses.
template <class Policy>
class alignas(64) BasicLockFreePermit {
 public:
  // ---- one thread at a time: the one for which belongs_to answers true; threads go by marks, os/thread_mark.hpp ----

  // Whether the stripe was lock-free, and stays so until leave(). What is done to it in between is done by atomics.
  [[gnu::always_inline]] bool enter(const BasicStripeLock<Policy>& stripe) {
    // Relaxed: what orders this store before the look is the revoker's barrier.
    stripe_.store(name_of(stripe), std::memory_order_relaxed);
    Policy::compiler_barrier();
    if (stripe.is_lock_free()) [[likely]]
      return true;
    leave();
    return false;
  }
  // Release pairs with the acquire in is_in: the update comes before.
  void leave() { stripe_.store(0, std::memory_order_release); }

  bool belongs_to(std::uint64_t thread) const { return thread_.load(std::memory_order_relaxed) == thread; }

  // ---- any thread of the process whose permit it is ----

  // Gives the permit to the first thread that asks, and when that has ended, has_ended(its mark) says so, to another.
  // No mark comes twice, so that who was to be replaced is still the one that has ended.
  template <class EndCheck>
  bool claim(std::uint64_t thread, EndCheck&& has_ended) {
    std::uint64_t owner = thread_.load(std::memory_order_relaxed);
    if (owner == thread) return true;
    if (owner != 0 && !has_ended(owner)) return false;
    // Relaxed: the end of a thread, which the kernel has reported, comes after all that it did.
    return thread_.compare_exchange_strong(owner, thread, std::memory_order_relaxed, std::memory_order_relaxed);
  }
  // The process has joined the barriers, and none of its threads has asked yet: one that had the permit in a process
  // before this one is no concern of it. Release pairs with is_ready.
  void make_ready() {
    thread_.store(0, std::memory_order_relaxed);
    ready_.store(1, std::memory_order_release);
  }

  // ---- anybody ----

  bool is_ready() const { return ready_.load(std::memory_order_acquire) != 0; }
  bool is_in(const BasicStripeLock<Policy>& stripe) const {
    return stripe_.load(std::memory_order_acquire) == name_of(stripe);
  }

 private:
  // Of a lock wherever it is mapped, for that is by whole pages. 64 stripes have one name; who waits for another one's
  // visitor waits for an instruction.
  static std::uint32_t name_of(const BasicStripeLock<Policy>& stripe) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&stripe) / sizeof stripe % 64) + 1;
  }

  // Written by the thread that the permit belongs to.
  typename Policy::template Atomic<std::uint32_t> stripe_;
  // Written by the process.
  typename Policy::template Atomic<std::uint32_t> ready_;
  typename Policy::template Atomic<std::uint64_t> thread_;
};

enum class Revocation : std::uint8_t {
  taken,          // the caller holds the lock, and nobody is inside
  not_lock_free,  // somebody else was faster
  busy,           // somebody stays inside; the stripe is lock-free as before
};

// Who is to be outside: permit_at(i) of `count` permits; is_dead(i) says whether i's process is gone.
template <class PermitAt, class DeadCheck>
struct Permits {
  std::uint32_t count;
  PermitAt permit_at;
  DeadCheck is_dead;
  // A caller that may not wait goes away where one that is inside was taken off its processor.
  bool may_wait;
};
template <class PermitAt, class DeadCheck>
Permits(std::uint32_t, PermitAt, DeadCheck, bool) -> Permits<PermitAt, DeadCheck>;

// By the holder of a stripe that was lock-free, behind the barrier: whether all are outside.
template <class Policy, class PermitAt, class DeadCheck>
bool all_outside(const BasicStripeLock<Policy>& stripe, const Permits<PermitAt, DeadCheck>& permits) {
  constexpr std::uint64_t sleep_ns = 50'000;
  for (std::uint32_t i = 0; i < permits.count; ++i) {
    for (int looks = 0; permits.permit_at(i).is_in(stripe); ++looks) {
      if (looks < Policy::spin_limit) {
        Policy::pause();
      } else if (permits.is_dead(i)) {
        break;
      } else if (!permits.may_wait) {
        return false;
      } else {
        Policy::sleep(sleep_ns);
      }
    }
  }
  return true;
}

// Takes the lock of a lock-free stripe.
template <class Policy, class PermitAt, class DeadCheck>
Revocation revoke_stripe(BasicStripeLock<Policy>& stripe, std::uint32_t me,
                         const Permits<PermitAt, DeadCheck>& permits) {
  if (!stripe.try_revoke(me)) return Revocation::not_lock_free;
  Policy::process_barrier();
  if (all_outside(stripe, permits)) return Revocation::taken;
  stripe.release_lock_free();
  return Revocation::busy;
}

// Revokes those of `count` stripes that are lock-free, at the price of one barrier, and leaves their locks free; those
// that somebody stays inside of are lock-free as before. It holds them all for that time, in which it waits for no
// lock, and who is inside neither: no two can wait for each other. At most most_revoked_together.
inline constexpr std::uint32_t most_revoked_together = 64;
template <class Policy, class StripeAt, class PermitAt, class DeadCheck>
void revoke_stripes(std::uint32_t count, StripeAt&& stripe_at, std::uint32_t me,
                    const Permits<PermitAt, DeadCheck>& permits) {
  BasicStripeLock<Policy>* revoked[most_revoked_together];
  std::uint32_t revoked_count = 0;
  for (std::uint32_t i = 0; i < count && revoked_count < most_revoked_together; ++i) {
    BasicStripeLock<Policy>& stripe = stripe_at(i);
    // Looked at first: what is not lock-free keeps its line.
    if (stripe.is_lock_free() && stripe.try_revoke(me)) revoked[revoked_count++] = &stripe;
  }
  if (revoked_count == 0) return;
  Policy::process_barrier();
  for (std::uint32_t i = 0; i < revoked_count; ++i) {
    if (all_outside(*revoked[i], permits))
      revoked[i]->release();
    else
      revoked[i]->release_lock_free();
  }
}

using LockFreePermit = BasicLockFreePermit<SystemAtomics>;
static_assert(sizeof(LockFreePermit) == 64);

}  // namespace farsum
