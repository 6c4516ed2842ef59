// A fair shared/exclusive lock between processes: a lock queue under a word that names who is at it, and a futex word
// per waiter. Each waiter looks at its own word, or sleeps on it, and is handed the lock; nobody competes for it again.
// Window locks and mutexes are made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lockfree/holder_word.hpp"
#include "lockfree/lock_bias.hpp"
#include "lockfree/lock_grant.hpp"
#include "lockfree/lock_queue.hpp"

namespace farsum {

enum class LockResult : std::uint8_t {
  acquired,
  gave_up,  // the wait policy did
  full,     // no slot: capacity counts shared holders and waiters
};

struct Requested {
  enum class Kind : std::uint8_t {
    granted,
    queued,
    taken,    // by others, or others wait: nothing happened
    full,     // see LockResult
    busy,     // the guard was not free: nothing happened, ask again
    refused,  // by the caller's claim, or by a view without the bias where there may be some: nothing happened
  };
  Kind kind = Kind::granted;
  std::uint32_t slot = 0;  // of a queued request, for has_been_granted and withdraw
};

// For jobs in which a death ends everything anyway.
struct NobodyDies {
  bool operator()(std::uint32_t) const { return false; }
};

// The guard and what it guards are one line, which who is at it takes once; the slots, at which their threads look,
// begin in another pair of lines, as processors fetch pairs.
template <class Policy>
struct alignas(128) BasicSharedLockState {
  BasicHolderWord<Policy> guard;
  BasicLockQueueState<Policy> queue;

  std::byte* slots() { return reinterpret_cast<std::byte*>(this) + sizeof(BasicSharedLockState); }
  static std::size_t footprint(std::uint32_t capacity) {
    return sizeof(BasicSharedLockState) + BasicLockSlots<Policy>::footprint(capacity);
  }
};

// A view of a state in memory (zeroed, at a multiple of 128, footprint(capacity) bytes); as many views as there are
// threads.
//
// Who may call: any thread of any process that maps it. An id is any number but 0 that is in the lock at most once: a
// rank plus something that tells its threads apart. is_dead(id) must become true some time after the death of who used
// that id. A crash: the dead stays named, as holder, as waiter or in the guard. Killed inside the guard it is found by
// the next caller, who breaks the guard, completes the half-done step and goes on. A dead holder or waiter stays until
// remove_dead: a dead waiter is handed the lock in its turn.
//
// An id that cannot reach this memory has a proxy that can, the agent of the memory's owner: request() and what follows
// it. The proxy sleeps on no word of the lock; who grants to it must ring it once out of the guard, see
// granted_for_another(). Killed between the two, it leaves a grant that the proxy finds when it hears of the death.
//
// A lock that may be held by bias (lock_bias.hpp) is taken exclusively through a view that knows the bias.
template <class Policy, class DeadCheck, class Bias = BasicLockBias<Policy>>
class BasicSharedLock {
 public:
  using State = BasicSharedLockState<Policy>;

  BasicSharedLock(State& state, std::uint32_t capacity, DeadCheck is_dead = {}, Bias bias = {})
      : guard_(&state.guard), queue_(state.queue, state.slots(), capacity), is_dead_(is_dead), bias_(bias) {}

  // Takes the lock if nobody is in the way and nobody waits; never waits itself, but for the guard.
  bool try_lock(Contender who, LockMode mode) {
    return *try_lock(who, mode, [] { return true; });
  }

  // The same where claim() says yes under the guard; nothing where it says no.
  template <class Claim>
  std::optional<bool> try_lock(Contender who, LockMode mode, Claim&& claim) {
    enter(who.id);
    std::optional<bool> granted;
    if (claim()) granted = acquire_free(who, mode);
    leave();
    return granted;
  }

  // Takes the lock, in order of arrival, and waits for it as wait() below does. `word` is its slot's first where it
  // must wait, here and below: of one that sleeps at once, asleep_for_good.
  template <class Wait>
  LockResult lock(Contender who, LockMode mode, Wait&& wait, std::uint32_t word = lock_word::waiting) {
    const Requested requested = take_or_queue(who, mode, word, [] { return true; });
    if (requested.kind == Requested::Kind::queued) return this->wait(who.id, requested.slot, wait);
    return requested.kind == Requested::Kind::granted ? LockResult::acquired : LockResult::full;
  }

  // Takes the lock or queues for it, where claim() says yes under the guard; waits for nothing but the guard. Who is
  // queued must wait().
  template <class Claim>
  Requested take_or_queue(Contender who, LockMode mode, std::uint32_t word, Claim&& claim) {
    enter(who.id);
    Requested requested{.kind = Requested::Kind::refused};
    if (claim()) requested = told(acquire(who, mode, word));
    leave();
    return requested;
  }

  // For who is queued, the id with which it queued. Calls wait(grant) -> keep_going, a BasicLockGrant<Policy>, which
  // should return when the grant has come, true to go on and false to give up. It may return true early, and must
  // return, true or false, some time after a death, for it may be that of who was about to hand over the lock.
  template <class Wait>
  [[gnu::noinline]] LockResult wait(std::uint32_t id, std::uint32_t slot, Wait&& wait) {
    BasicLockGrant<Policy> grant(queue_, slot);
    while (!grant.has_come()) {
      if (!wait(grant)) {
        return leave_queue(id, slot);
      }
      if (!grant.has_come() && recover(guard_->holder(), id)) {
        leave();
      }
    }
    return LockResult::acquired;
  }

  // take_or_queue() where the guard is free at once, and nobody is to be entered first. then(kind) runs before the
  // guard is left: what threads of one id agree on only under the guard may be plain loads and stores.
  template <class May, class Then>
  [[gnu::always_inline]] Requested take_or_queue_once(Contender who, LockMode mode, std::uint32_t word, May&& may,
                                                      Then&& then) {
    if (!guard_->try_acquire(who.id)) return {.kind = Requested::Kind::busy};
    Requested requested{.kind = Requested::Kind::refused};
    if (may()) {
      requested = told(queue_.acquire(who, mode, word));
      then(requested.kind);
    }
    guard_->release();
    return requested;
  }

  // The same for unlock: `then` runs before anybody else can have the lock.
  template <class May, class Then>
  bool try_unlock_once(Contender who, LockMode mode, May&& may, Then&& then) {
    if (!guard_->try_acquire(who.id)) return false;
    const bool held = may() && queue_.release(who, mode, on_grant());
    if (held) then();
    leave();
    return held;
  }

  // What f() changes is seen whole by the may() and then() of other threads, and they by f().
  template <class F>
  auto under_guard(std::uint32_t id, F&& f) {
    enter(id);
    const auto result = f();
    leave();
    return result;
  }

  // Hands the lock on; false when it is not held in this mode.
  bool unlock(Contender who, LockMode mode) {
    return *unlock(who, mode, [] { return true; });
  }

  // The same where claim() says yes under the guard; nothing where it says no.
  template <class Claim>
  std::optional<bool> unlock(Contender who, LockMode mode, Claim&& claim) {
    enter(who.id);
    std::optional<bool> held;
    if (claim()) held = queue_.release(who, mode, on_grant());
    leave();
    return held;
  }

  // Takes a dead id out, holder or waiter, and grants to those it held up; returns whether it was in. `me` is the
  // caller's own id. What the lock protects may be half written.
  bool remove_dead(std::uint32_t dead, std::uint32_t me) {
    enter(me);
    const bool found = queue_.remove(dead, on_grant());
    leave();
    return found;
  }

  // By who holds it shared: from here on it may be held by bias. False where a writer waits.
  bool allow_bias(std::uint32_t me) {
    return under_guard(me, [this] { return queue_.allow_bias(); });
  }

  // ---- for another: `me` enters the guard, for it is who may die in there; the lock is id's ----

  // Takes the lock or queues for it; never waits.
  Requested request(std::uint32_t me, Contender who, LockMode mode) {
    if (!try_enter(me)) return {.kind = Requested::Kind::busy};
    const Acquired acquired = acquire(who, mode, lock_word::proxy);
    leave();
    return told(acquired);
  }

  // The same, but it does not queue.
  Requested request_at_once(std::uint32_t me, Contender who, LockMode mode) {
    if (!try_enter(me)) return {.kind = Requested::Kind::busy};
    const bool granted = acquire_free(who, mode);
    leave();
    return {.kind = granted ? Requested::Kind::granted : Requested::Kind::taken};
  }

  // Of a queued request that has neither been withdrawn nor given back.
  bool has_been_granted(std::uint32_t slot) const {
    // Acquire pairs with the release store in grant().
    return queue_.slot(slot).word.load(std::memory_order_acquire) == lock_word::proxy_granted;
  }

  // Hands on what request() got; nothing when the guard was not free, false when the lock is not held so.
  std::optional<bool> give_back(std::uint32_t me, Contender who, LockMode mode) {
    if (!try_enter(me)) return std::nullopt;
    const bool held = queue_.release(who, mode, on_grant());
    leave();
    return held;
  }

  // Takes a queued request back; nothing when the guard was not free, false when it was granted before: id holds the
  // lock.
  std::optional<bool> withdraw(std::uint32_t me, std::uint32_t slot) {
    if (!try_enter(me)) return std::nullopt;
    const bool was_waiting = queue_.cancel(slot, on_grant());
    leave();
    return was_waiting;
  }

  // Completes what somebody was doing inside the guard when killed; for who waits for a queued request and hears of a
  // death. Never waits.
  void mend(std::uint32_t me) {
    if (recover(guard_->holder(), me)) leave();
  }

  // Whether a queued request was granted through this view, whatever the call: also a lock() in vain or a try_lock()
  // may find a grant that a dead one did not tell of. The proxy must then be rung. May say so once too often.
  bool granted_for_another() const { return granted_for_another_; }

  // Calls f(id, mode) for each holder, without the guard: the answer may be stale. remove_dead looks again under the
  // guard.
  template <class F>
  void for_each_holder(F&& f) const {
    queue_.for_each_holder(f);
    if (!queue_.may_be_biased() || !bias_.exists()) return;
    bias_.for_each_holder([&](Contender who) {
      if (!queue_.is_entered(who)) f(who.id, LockMode::shared);
    });
  }

  // Who is inside the guard; 0 for nobody.
  std::uint32_t guard_holder() const { return guard_->holder(); }

 private:
  static Requested told(const Acquired& acquired) {
    switch (acquired.kind) {
      case Acquired::Kind::granted:
        return {};
      case Acquired::Kind::queued:
        return {.kind = Requested::Kind::queued, .slot = acquired.slot};
      case Acquired::Kind::biased:
        return {.kind = Requested::Kind::refused};
      case Acquired::Kind::full:
        break;
    }
    return {.kind = Requested::Kind::full};
  }

  // Both under the guard. The second does not queue.
  Acquired acquire(Contender who, LockMode mode, std::uint32_t word) {
    const Acquired acquired = queue_.acquire(who, mode, word);
    if (acquired.kind != Acquired::Kind::biased || !bias_.exists()) [[likely]]
      return acquired;
    return end_bias() ? queue_.acquire(who, mode, word) : Acquired{.kind = Acquired::Kind::full};
  }
  bool acquire_free(Contender who, LockMode mode) {
    if (mode == LockMode::exclusive && queue_.may_be_biased() && bias_.exists() && !end_bias()) return false;
    return queue_.would_grant(mode) && queue_.acquire(who, mode).kind == Acquired::Kind::granted;
  }

  // Those who hold by bias stand in the queue from here on.
  [[gnu::noinline]] bool end_bias() {
    bias_.end();
    return queue_.enter_biased([this](auto&& enter) { bias_.for_each_holder(enter); });
  }

  // Neighbouring readers that sleep are granted together; of more than these the rest is woken under the guard.
  static constexpr std::uint32_t most_to_wake = 8;

  void enter(std::uint32_t me) {
    if (guard_->try_acquire(me)) [[likely]] {
      return;
    }
    while (!guard_->acquire_slow(me, is_dead_)) {
      if (recover(guard_->holder(), me)) {
        return;
      }
    }
  }

  bool try_enter(std::uint32_t me) { return guard_->try_acquire(me) || recover(guard_->holder(), me); }

  void leave() {
    guard_->release();
    if (to_wake_count_ != 0) [[unlikely]]
      wake_granted();
  }

  // The words may be others' by now, who then look once in vain.
  [[gnu::noinline]] void wake_granted() {
    for (std::uint32_t i = 0; i < to_wake_count_; ++i) Policy::wake(*to_wake_[i], 1);
    to_wake_count_ = 0;
  }

  // Takes the guard over from the dead and completes what it was doing; the guard stays with me.
  [[gnu::noinline]] bool recover(std::uint32_t dead, std::uint32_t me) {
    if (dead == 0 || !is_dead_(dead) || !guard_->break_dead(dead, me)) {
      return false;
    }
    queue_.repair(on_repair());
    return true;
  }

  // Both run under the guard. A wake is a system call, so that it is made once the guard is left.
  struct Telling {
    BasicSharedLock* lock;

    void operator()(std::uint32_t, std::uint32_t slot) const {
      const std::uint32_t was = lock->grant(slot);
      if (was != lock_word::waiting && was != lock_word::granted && was != lock_word::proxy) lock->wake_later(slot);
    }
    // Whether the slot's thread slept and would look if it were awake. The word is changed by its own thread meanwhile.
    bool call(std::uint32_t slot) const {
      auto& word = lock->queue_.slot(slot).word;
      std::uint32_t expected = lock_word::asleep;
      // Relaxed: tells of nothing but the word. Most words say something else, and a look at one leaves it where it is.
      if (word.load(std::memory_order_relaxed) != expected ||
          !word.compare_exchange_strong(expected, lock_word::called, std::memory_order_relaxed,
                                        std::memory_order_relaxed))
        return false;
      lock->wake_later(slot);
      return true;
    }
  };
  Telling on_grant() { return {this}; }

  void wake_later(std::uint32_t slot) {
    auto& word = queue_.slot(slot).word;
    if (to_wake_count_ < most_to_wake) {
      to_wake_[to_wake_count_++] = &word;
    } else {
      Policy::wake(word, 1);
    }
  }

  // The dead may have granted a sleeper's slot and not come to wake it. Under the guard, for they may be many.
  auto on_repair() {
    return [this](std::uint32_t, std::uint32_t slot) {
      if (grant(slot) != lock_word::proxy) Policy::wake(queue_.slot(slot).word, 1);
    };
  }

  // Returns what the word was; a proxy's is told as proxy, however often it is granted.
  std::uint32_t grant(std::uint32_t slot) {
    auto& word = queue_.slot(slot).word;
    // Relaxed: only the guard's holder changes a proxy's word.
    const std::uint32_t was = word.load(std::memory_order_relaxed);
    if (was != lock_word::proxy && was != lock_word::proxy_granted) {
      // One step with the thread's own that says that it will sleep. Release pairs with the acquire in
      // BasicLockGrant::has_come.
      return word.exchange(lock_word::granted, std::memory_order_release);
    }
    // Pairs with the acquire load in has_been_granted.
    word.store(lock_word::proxy_granted, std::memory_order_release);
    granted_for_another_ = true;
    return lock_word::proxy;
  }

  LockResult leave_queue(std::uint32_t id, std::uint32_t slot) {
    enter(id);
    const bool was_waiting = queue_.cancel(slot, on_grant());
    leave();
    return was_waiting ? LockResult::gave_up : LockResult::acquired;
  }

  BasicHolderWord<Policy>* guard_;
  BasicLockQueue<Policy> queue_;
  DeadCheck is_dead_;
  [[no_unique_address]] Bias bias_;
  bool granted_for_another_ = false;
  // Granted under the guard, to be woken out of it.
  std::uint32_t to_wake_count_ = 0;
  typename Policy::template Atomic<std::uint32_t>* to_wake_[most_to_wake];
};

using SharedLockState = BasicSharedLockState<SystemAtomics>;
static_assert(sizeof(SharedLockState) == 128);
static_assert(offsetof(SharedLockState, queue) + sizeof(LockQueueState) <= 64);
template <class DeadCheck = NobodyDies, class Bias = LockBias>
using SharedLock = BasicSharedLock<SystemAtomics, DeadCheck, Bias>;

}  // namespace farsum
