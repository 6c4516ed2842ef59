// Single elements beside bulk, without a lock for the former: in a stripe that is open, elements are updated by the
// processor's own atomics under a pass, which costs two plain stores; whoever needs the stripe for more closes it.
//
// The stripe's lock word says which of the two it is, so that who takes the lock finds out by failing to. A pass is a
// word of one thread, in which it says what stripe it is in. To go in it writes that, and then looks whether the stripe
// is open. Who closes the stripe takes the lock word, and then looks at all passes until none is in the stripe. Each
// writes one word and then reads the other's, so that one of the two must see the other, if no read overtakes a write:
// the closer, who is rare, sees to it for both sides by a barrier in all processes (os/process_barrier.hpp), and what
// is left for the pass is that the compiler keeps the order. tests/lockfree/word_pass_model_test.cpp goes through every
// interleaving of this code on total store order, and shows that it fails without that barrier.
//
// A crash: a pass that was killed inside stays inside; its update is an atomic instruction, done or not. The closer
// asks is_dead and goes on. A closer that was killed holds the lock, as any other holder.
#pragma once

#include <cstdint>

#include "lockfree/stripe_lock.hpp"

namespace farsum {

// Zeroed memory is a pass that nobody uses.
template <class Policy>
class alignas(64) BasicWordPass {
 public:
  // ---- one thread at a time: the one for which belongs_to answers true; threads go by marks, os/thread_mark.hpp ----

  // Whether the stripe was open, and stays so until leave(). What is done to it in between is done by atomics.
  [[gnu::always_inline]] bool enter(const BasicStripeLock<Policy>& stripe) {
    // Relaxed: what orders this store before the look is the closer's barrier.
    stripe_.store(name_of(stripe), std::memory_order_relaxed);
    Policy::compiler_barrier();
    if (stripe.is_open()) [[likely]]
      return true;
    leave();
    return false;
  }
  // Release pairs with the acquire in is_in: the update comes before.
  void leave() { stripe_.store(0, std::memory_order_release); }

  bool belongs_to(std::uint64_t thread) const { return thread_.load(std::memory_order_relaxed) == thread; }

  // ---- any thread of the process whose pass it is ----

  // Gives the pass to the first thread that asks, and when that has ended, has_ended(its mark) says so, to another. No
  // mark comes twice, so that who was to be replaced is still the one that has ended.
  template <class EndCheck>
  bool claim(std::uint64_t thread, EndCheck&& has_ended) {
    std::uint64_t owner = thread_.load(std::memory_order_relaxed);
    if (owner == thread) return true;
    if (owner != 0 && !has_ended(owner)) return false;
    // Relaxed: the end of a thread, which the kernel has reported, comes after all that it did.
    return thread_.compare_exchange_strong(owner, thread, std::memory_order_relaxed, std::memory_order_relaxed);
  }
  // The process has joined the barriers, and none of its threads has asked yet: one that had the pass in a process
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

  // Written by the thread that the pass belongs to.
  typename Policy::template Atomic<std::uint32_t> stripe_;
  // Written by the process.
  typename Policy::template Atomic<std::uint32_t> ready_;
  typename Policy::template Atomic<std::uint64_t> thread_;
};

enum class Closing : std::uint8_t {
  taken,     // the caller holds the lock, and nobody is inside
  not_open,  // somebody else was faster
  busy,      // somebody stays inside; the stripe is open as before
};

// Who is to be outside: pass_at(i) of `count` passes; is_dead(i) says whether i's process is gone.
template <class PassAt, class DeadCheck>
struct Passes {
  std::uint32_t count;
  PassAt pass_at;
  DeadCheck is_dead;
  // A caller that may not wait goes away where one that is inside was taken off its processor.
  bool may_wait;
};
template <class PassAt, class DeadCheck>
Passes(std::uint32_t, PassAt, DeadCheck, bool) -> Passes<PassAt, DeadCheck>;

// By the holder of a stripe that was open, behind the barrier: whether all are outside.
template <class Policy, class PassAt, class DeadCheck>
bool all_outside(const BasicStripeLock<Policy>& stripe, const Passes<PassAt, DeadCheck>& passes) {
  constexpr std::uint64_t sleep_ns = 50'000;
  for (std::uint32_t i = 0; i < passes.count; ++i) {
    for (int looks = 0; passes.pass_at(i).is_in(stripe); ++looks) {
      if (looks < Policy::spin_limit) {
        Policy::pause();
      } else if (passes.is_dead(i)) {
        break;
      } else if (!passes.may_wait) {
        return false;
      } else {
        Policy::sleep(sleep_ns);
      }
    }
  }
  return true;
}

// Takes the lock of an open stripe.
template <class Policy, class PassAt, class DeadCheck>
Closing close_stripe(BasicStripeLock<Policy>& stripe, std::uint32_t me, const Passes<PassAt, DeadCheck>& passes) {
  if (!stripe.try_close(me)) return Closing::not_open;
  Policy::process_barrier();
  if (all_outside(stripe, passes)) return Closing::taken;
  stripe.release_open();
  return Closing::busy;
}

// Closes those of `count` stripes that are open, at the price of one barrier, and leaves them free; those that somebody
// stays inside of are open as before. It holds them all for that time, in which it waits for no lock, and who is inside
// neither: no two can wait for each other. At most most_closed_together.
inline constexpr std::uint32_t most_closed_together = 64;
template <class Policy, class StripeAt, class PassAt, class DeadCheck>
void close_stripes(std::uint32_t count, StripeAt&& stripe_at, std::uint32_t me,
                   const Passes<PassAt, DeadCheck>& passes) {
  BasicStripeLock<Policy>* closed[most_closed_together];
  std::uint32_t closed_count = 0;
  for (std::uint32_t i = 0; i < count && closed_count < most_closed_together; ++i) {
    BasicStripeLock<Policy>& stripe = stripe_at(i);
    // Looked at first: what is not open keeps its line.
    if (stripe.is_open() && stripe.try_close(me)) closed[closed_count++] = &stripe;
  }
  if (closed_count == 0) return;
  Policy::process_barrier();
  for (std::uint32_t i = 0; i < closed_count; ++i) {
    if (all_outside(*closed[i], passes))
      closed[i]->release();
    else
      closed[i]->release_open();
  }
}

using WordPass = BasicWordPass<SystemAtomics>;
static_assert(sizeof(WordPass) == 64);

}  // namespace farsum
