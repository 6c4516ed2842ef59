// What a thread in the queue of a lock looks at and sleeps on: the word of its slot, which says whether its grant has
// come, and tells whoever hands over the lock whether the thread must be woken.
#pragma once

#include <cstdint>

#include "lockfree/lock_queue.hpp"
#include "os/futex.hpp"

namespace farsum {

// One thread, whose slot it is, calls.
//
// No wake-up is lost: a thread that sleeps has said so in the very word that the granter exchanges, and the futex
// compares it once more. A granter that is killed between its exchange and its wake leaves a thread asleep whose grant
// has come; so sleeps must end by themselves.
template <class Policy>
class BasicLockGrant {
 public:
  using Word = typename Policy::template Atomic<std::uint32_t>;

  BasicLockGrant(const BasicLockQueue<Policy>& queue, std::uint32_t slot)
      : queue_(&queue), slot_(slot), word_(&queue.slot(slot).word) {}

  // Acquire pairs with the release of who granted: the new holder sees what the old one wrote.
  bool has_come() const { return word_->load(std::memory_order_acquire) == lock_word::granted; }

  // What a sleeper does when it is called, before its grant has come: it looks, or sleeps on.
  enum class WhenCalled : std::uint8_t { looks, sleeps_on };

  // Said before each sleep; false when the grant has come, or the thread was called. Who queued as asleep for good says
  // that it sleeps on.
  bool fall_asleep(WhenCalled when_called = WhenCalled::looks) {
    const std::uint32_t asleep = when_called == WhenCalled::looks ? lock_word::asleep : lock_word::asleep_for_good;
    std::uint32_t expected = lock_word::waiting;
    // Relaxed: nothing but the word itself is told, and has_come() acquires.
    const bool fell =
        word_->compare_exchange_strong(expected, asleep, std::memory_order_relaxed, std::memory_order_relaxed) ||
        expected == asleep;
    asleep_ = asleep;
    return fell;
  }

  // As a futex does: may end early, and does so where the grant has come or the thread was called.
  WaitResult sleep(std::uint64_t longest_ns) { return Policy::wait(*word_, asleep_, longest_ns); }

  // Whether the thread was called: from here on it counts as one that looks.
  bool answer_call() {
    std::uint32_t expected = lock_word::called;
    // Relaxed: as in fall_asleep().
    return word_->compare_exchange_strong(expected, lock_word::waiting, std::memory_order_relaxed,
                                          std::memory_order_relaxed);
  }

  // How often the queue has moved, modulo 2^32, and about how many turns come before this one. Both read lines that
  // those who take and give back the lock write: not to be asked often.
  std::uint32_t turns() const { return queue_->turns(); }
  std::uint64_t turns_before() const { return queue_->turns_before(slot_); }

  // Tells it from those of other slots.
  const Word* word() const { return word_; }

 private:
  const BasicLockQueue<Policy>* queue_;
  std::uint32_t slot_;
  std::uint32_t asleep_ = lock_word::asleep;
  Word* word_;
};

using LockGrant = BasicLockGrant<SystemAtomics>;

}  // namespace farsum
