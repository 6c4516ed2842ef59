// Who holds the shared locks of a whole window without being in any of them: ranks that lock all, while nobody locks
// one exclusively. Each says so in a word of its own; the first that wants a lock for itself ends it for all, and
// enters those that it finds in the queue of that lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lockfree/lock_queue.hpp"
#include "os/futex.hpp"

namespace farsum {

// Zeroed memory offers nothing. Processors fetch lines in pairs.
template <class Policy>
struct alignas(128) BasicLockBiasState {
  // Written by those who end an offer or make one, and read by all: an epoch, and what it is.
  typename Policy::template Atomic<std::uint64_t> word;
};

template <class Policy>
struct alignas(128) BasicLockBiasMember {
  // Written by its rank: who holds, or 0.
  typename Policy::template Atomic<std::uint64_t> holder;
};

// A view of a state in memory (zeroed, at a multiple of 128, footprint(members) bytes). One that was made of nothing is
// of locks that nobody holds so.
//
// Who may call: any thread of any process that maps it. hold() and release() are for one thread of a member at a time;
// its place is its own, below `members`. Whoever uses the locks keeps to this, for each lock:
//
// - Where it may be held by bias, its queue says so (LockQueue::may_be_biased). That is said under its guard, by who
//   makes an offer and holds the lock shared, before the offer is confirmed.
// - Who wants it exclusively and finds that said calls end(), enters all whom for_each_holder() names, and only then
//   takes back what was said. All of it under the guard of the lock, and all of it may be done again.
// - A member whom release() or hold() tells that others may have entered it leaves each lock, under its guard, where it
//   finds itself.
//
// So an exclusive lock is granted over nobody: a member writes its word and then looks at the offer, and who ends the
// offer does so before it looks at the words. One of the two sees the other. A member may be named that holds by an
// older epoch's offer, or that is about to find out that it came too late: it leaves as any other does.
//
// A crash: a member stays named, until remove_dead(); an offer that was not confirmed holds nobody up, and the next to
// want a lock for itself ends it.
template <class Policy>
class BasicLockBias {
 public:
  using State = BasicLockBiasState<Policy>;
  using Member = BasicLockBiasMember<Policy>;

  enum class Hold : std::uint8_t {
    held,
    not_offered,  // nothing happened
    revoked,      // not held, but others may have entered this member
  };

  BasicLockBias() = default;
  BasicLockBias(State& state, std::uint32_t members) : state_(&state), members_(members) {}

  static std::size_t footprint(std::uint32_t members) { return sizeof(State) + members * sizeof(Member); }

  bool exists() const { return state_ != nullptr; }
  const State* state() const { return state_; }
  // A hint. Relaxed: hold() looks again.
  bool is_offered() const { return exists() && state_of(state_->word.load(std::memory_order_relaxed)) == offered; }

  // Of a state that nobody uses yet; by as many as like.
  void begin() {
    // Relaxed: those who begin meet before anybody locks.
    state_->word.store(first_epoch | offered, std::memory_order_relaxed);
  }

  // Holds all locks shared. `epoch` is for release().
  Hold hold(Contender who, std::uint64_t& epoch) {
    // Relaxed: it is looked at again.
    epoch = state_->word.load(std::memory_order_relaxed);
    if (state_of(epoch) != offered) return Hold::not_offered;
    // seq_cst, here, in the next line, in end() and in for_each_holder(): see the class. The load pairs with the
    // release in confirm(), too: what was written under exclusive locks is seen.
    member(who.place).holder.exchange(word_of(who), std::memory_order_seq_cst);
    if (state_->word.load(std::memory_order_seq_cst) == epoch) return Hold::held;
    withdraw(who.place);
    return Hold::revoked;
  }

  // False where others may have entered this member.
  bool release(std::uint32_t place, std::uint64_t epoch) {
    // seq_cst: who ends the offer after the look finds the word as it is from here on. Release pairs with the acquire
    // in for_each_holder().
    member(place).holder.exchange(0, std::memory_order_seq_cst);
    return state_->word.load(std::memory_order_seq_cst) == epoch;
  }

  // Nobody comes to hold from here on that for_each_holder() would not name.
  void end() {
    std::uint64_t word = state_->word.load(std::memory_order_seq_cst);
    while (state_of(word) != none) {
      if (state_->word.compare_exchange_strong(word, epoch_of(word) | none, std::memory_order_seq_cst,
                                               std::memory_order_seq_cst))
        return;
    }
  }

  // Calls f(contender) for each that may hold by an offer, of any epoch.
  template <class F>
  void for_each_holder(F&& f) const {
    for (std::uint32_t place = 0; place < members_; ++place) {
      const std::uint64_t word = member(place).holder.load(std::memory_order_seq_cst);
      if (word != 0) f(Contender(static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)));
    }
  }

  // Begins a new offer, of which nobody makes use yet; nothing where there is one, or another is about to make one.
  std::optional<std::uint64_t> prepare() {
    std::uint64_t word = state_->word.load(std::memory_order_relaxed);
    if (state_of(word) != none) return std::nullopt;
    const std::uint64_t prepared = (epoch_of(word) + first_epoch) | announced;
    // Relaxed: nothing but the word is told yet.
    const bool done =
        state_->word.compare_exchange_strong(word, prepared, std::memory_order_relaxed, std::memory_order_relaxed);
    return done ? std::optional(prepared) : std::nullopt;
  }

  // By who has prepared it and holds all locks shared, of each of which it has been said that it may be held so. False
  // where somebody has ended it.
  bool confirm(std::uint64_t prepared) {
    // Release pairs with the acquire in hold().
    return state_->word.compare_exchange_strong(prepared, epoch_of(prepared) | offered, std::memory_order_seq_cst,
                                                std::memory_order_relaxed);
  }

  void give_up(std::uint64_t prepared) {
    // Relaxed: nobody has held by it.
    state_->word.compare_exchange_strong(prepared, epoch_of(prepared) | none, std::memory_order_relaxed,
                                         std::memory_order_relaxed);
  }

  // For who goes on after a death, before its id is removed from the locks.
  void remove_dead(std::uint32_t place) { withdraw(place); }

 protected:
  // What the word is besides an epoch.
  static constexpr std::uint64_t none = 0;
  static constexpr std::uint64_t offered = 1;
  static constexpr std::uint64_t announced = 2;  // prepared, not confirmed
  static constexpr std::uint64_t states = 3;
  static constexpr std::uint64_t first_epoch = states + 1;

  static std::uint64_t state_of(std::uint64_t word) { return word & states; }
  static std::uint64_t epoch_of(std::uint64_t word) { return word & ~states; }
  static std::uint64_t word_of(Contender who) { return std::uint64_t{who.id} << 32 | who.place; }

  // Release: whoever finds it so comes after all that was done under the hold.
  void withdraw(std::uint32_t place) { member(place).holder.exchange(0, std::memory_order_seq_cst); }

  Member& member(std::uint32_t place) const { return reinterpret_cast<Member*>(state_ + 1)[place]; }

  State* state_ = nullptr;
  std::uint32_t members_ = 0;
};

// Of a view that takes no lock exclusively where it may be held by bias.
struct NoLockBias {
  static bool exists() { return false; }
  static void end() {}
  template <class F>
  static void for_each_holder(F&&) {}
};

using LockBiasState = BasicLockBiasState<SystemAtomics>;
using LockBias = BasicLockBias<SystemAtomics>;
static_assert(sizeof(LockBiasState) == 128);

}  // namespace farsum
