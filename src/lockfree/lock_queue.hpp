// A fair shared/exclusive lock as a pure state machine: first come, first served, neighbouring readers together.
// It neither waits nor wakes nor synchronises; shared_lock.hpp adds that, and over messages the target's agent does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "os/futex.hpp"

namespace farsum {

enum class LockMode : std::uint8_t { shared, exclusive };

struct Acquired {
  enum class Kind : std::uint8_t {
    granted,
    queued,
    full,
    biased,  // nothing happened: those who hold it by bias are to be entered first
  };
  Kind kind = Kind::granted;
  std::uint32_t slot = 0;  // of a queued request, for cancel and on_grant
};

// Values of the word that the owner of a slot looks at and sleeps on (lock_grant.hpp). The first store is that of who
// queues, the last that of who grants; both are made under the guard of the lock, and the word changes between them
// without it.
namespace lock_word {
inline constexpr std::uint32_t granted = 1;
inline constexpr std::uint32_t waiting = 2;  // its thread looks
// Not granted once more: repair() grants a slot again, and it must tell again.
inline constexpr std::uint32_t proxy = 3;
inline constexpr std::uint32_t proxy_granted = 4;
inline constexpr std::uint32_t asleep = 5;  // or about to be
// Woken by who handed the lock to another, so that it looks: it has yet to run.
inline constexpr std::uint32_t called = 6;
// As asleep, of one that would not look if it were called.
inline constexpr std::uint32_t asleep_for_good = 7;
}  // namespace lock_word

// Who wants a lock: it is in it under `id`, and its slot is looked for from `place` on, which is a different one for
// each who may be in the lock, and below the capacity, where that is known.
struct Contender {
  // NOLINTNEXTLINE(google-explicit-constructor): an id is a contender of whom no more is known.
  Contender(std::uint32_t its_id) : id(its_id), place(its_id) {}
  Contender(std::uint32_t its_id, std::uint32_t its_place) : id(its_id), place(its_place) {}

  std::uint32_t id;
  std::uint32_t place;
};

// One request: waiting, or holding the lock.
template <class Policy>
struct BasicLockSlot {
  // What the waiter looks at and sleeps on (lock_grant.hpp). The state machine gives it its first value only.
  typename Policy::template Atomic<std::uint32_t> word;
  // The commit word: written last when the slot is taken, first when it changes hands.
  typename Policy::template Guarded<std::uint32_t> state;
  typename Policy::template Guarded<std::uint32_t> id;
  typename Policy::template Guarded<std::uint32_t> wants_exclusive;
  // Order of arrival; what the queue is rebuilt from.
  typename Policy::template Guarded<std::uint64_t> arrival;
  // The next in the queue, plus one; 0 at its end.
  typename Policy::template Guarded<std::uint32_t> next;
};

// The slots of a lock in memory: each on a line of its own, for its thread looks at it again and again, while they are
// few enough to take no room worth saving.
template <class Policy>
class BasicLockSlots {
 public:
  BasicLockSlots(std::byte* begin, std::uint32_t capacity) : begin_(begin), capacity_(capacity) {}

  BasicLockSlot<Policy>& operator[](std::uint32_t index) const {
    return *reinterpret_cast<BasicLockSlot<Policy>*>(begin_ + (std::size_t{index} << stride_log(capacity_)));
  }
  static std::size_t footprint(std::uint32_t capacity) { return std::size_t{capacity} << stride_log(capacity); }

 private:
  static constexpr std::uint32_t most_on_lines = 64;
  static std::uint32_t stride_log(std::uint32_t capacity) { return capacity <= most_on_lines ? 6 : 5; }

  std::byte* begin_;
  std::uint32_t capacity_;
};

// Zeroed memory, with zeroed slots, is a free lock.
template <class Policy>
struct BasicLockQueueState {
  typename Policy::template Guarded<std::uint64_t> arrivals;
  // The truth: 0, or the id that holds exclusively.
  typename Policy::template Guarded<std::uint32_t> exclusive_holder;
  // Derived from the slots.
  typename Policy::template Guarded<std::uint32_t>
      exclusive_slot;  // plus one; 0 when it was granted at once, without a slot
  // Where the lock may be held by bias that counts as one holder more, so that a writer that comes need not look.
  typename Policy::template Guarded<std::uint32_t> shared_count;
  typename Policy::template Guarded<std::uint32_t> first_waiting;  // plus one
  typename Policy::template Guarded<std::uint32_t> last_waiting;   // plus one
  // When another was first granted the lock before the first that waits; 0: none was.
  typename Policy::template Guarded<std::uint64_t> first_passed_ns;
  // How often a waiter was granted the lock, modulo 2^32: a hint for those who wait, read without the guard.
  typename Policy::template Guarded<std::uint32_t> turns;
  // The truth: others than those in the slots may hold it shared (lock_bias.hpp). Then no writer holds it or waits.
  typename Policy::template Guarded<std::uint32_t> may_be_biased;
};

// A view of a state in memory. One caller at a time: in shared memory under a guard, in the simulator by construction.
// Capacity: shared holders and waiters together; an id (not 0) is in the lock at most once.
// A crash of the caller between any two writes leaves a state that repair() completes: the slots' commit words and
// exclusive_holder are the truth, all else is derived from them.
template <class Policy>
class BasicLockQueue {
 public:
  // The slots begin at a multiple of 64.
  BasicLockQueue(BasicLockQueueState<Policy>& state, std::byte* slots, std::uint32_t capacity)
      : state_(&state), slots_(slots, capacity), capacity_(capacity) {}

  // Readers that arrive behind a waiting writer wait, too. A writer is told where the lock may be held by bias. `word`
  // is the first of a slot whose owner must wait.
  [[gnu::always_inline]] Acquired acquire(Contender who, LockMode mode, std::uint32_t word = lock_word::waiting) {
    if (mode == LockMode::exclusive && would_grant(mode)) [[likely]] {
      state_->exclusive_holder = who.id;
      return {};
    }
    return acquire_slot(who, mode, word);
  }

  // Whether acquire would grant it, without doing it; no to a writer where the lock may be held by bias.
  bool would_grant(LockMode mode) const {
    const bool free_now = state_->first_waiting == 0 && state_->exclusive_holder == 0;
    return free_now && (mode == LockMode::shared || state_->shared_count == 0);
  }

  // ---- holders that are not in the queue, see lock_bias.hpp ----

  bool may_be_biased() const { return state_->may_be_biased != 0; }

  // By who holds it shared, or before anybody locks; false where a writer waits.
  bool allow_bias() {
    if (state_->first_waiting != 0) {
      return false;
    }
    if (!may_be_biased()) {
      state_->may_be_biased = 1;
      state_->shared_count = state_->shared_count + 1;
    }
    return true;
  }

  // Enters those whom for_each(f) names to f as holders, where they are not in it, and then nobody else holds it. The
  // same once more completes what a killed caller began. False where there are more than slots.
  template <class ForEach>
  bool enter_biased(ForEach&& for_each) {
    bool has_room = true;
    const bool has_entries = state_->shared_count != 1;
    for_each([&](Contender who) {
      if (has_entries && find(who, holding_shared) != none) {
        return;
      }
      const std::uint32_t slot = find_free(who);
      has_room = has_room && slot != none;
      if (slot != none) {
        hold_shared(slot, who.id);
      }
    });
    if (has_room) {
      state_->may_be_biased = 0;
      state_->shared_count = state_->shared_count - 1;
    }
    return has_room;
  }

  // Whether it is in a slot as a holder.
  bool is_entered(Contender who) const { return find(who, holding_shared) != none; }

  // Ends a hold and calls on_grant(id, slot) for each waiter that holds the lock now. False when it is not held so.
  template <class OnGrant>
  bool release(Contender who, LockMode mode, OnGrant&& on_grant) {
    if (mode == LockMode::exclusive) {
      if (state_->exclusive_holder != who.id) {
        return false;
      }
      drop_exclusive();
    } else {
      const std::uint32_t slot = find(who, holding_shared);
      if (slot == none) {
        return false;
      }
      drop_shared(slot);
    }
    grant(on_grant);
    return true;
  }

  // Takes a waiter out of the queue; those it held up are granted. False when it was granted before: it holds the lock.
  template <class OnGrant>
  bool cancel(std::uint32_t slot, OnGrant&& on_grant) {
    if (slots_[slot].state != waiting) {
      return false;
    }
    unlink(slot);
    slots_[slot].state = unused;
    grant(on_grant);
    return true;
  }

  // Takes id out altogether, holding or waiting; returns whether it was in.
  template <class OnGrant>
  bool remove(std::uint32_t id, OnGrant&& on_grant) {
    bool found = false;
    if (state_->exclusive_holder == id) {
      drop_exclusive();
      found = true;
    }
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      if (slots_[slot].state == unused || slots_[slot].id != id) {
        continue;
      }
      if (slots_[slot].state == waiting) {
        unlink(slot);
        slots_[slot].state = unused;
      } else {
        drop_shared(slot);
      }
      found = true;
    }
    grant(on_grant);
    return found;
  }

  // Completes what a caller that was killed midway had begun, and calls on_grant for every holder that has a slot, for
  // the dead may have granted without telling. Idempotent, and may itself be killed and called again.
  template <class OnGrant>
  void repair(OnGrant&& on_grant) {
    repair_exclusive();
    rebuild_counts_and_queue();
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      if (slots_[slot].state == holding_shared || slots_[slot].state == holding_exclusive) {
        on_grant(static_cast<std::uint32_t>(slots_[slot].id), slot);
      }
    }
    grant(on_grant);
  }

  // Hints, which may be asked for without the guard: how often a waiter was granted the lock, and how many at most are
  // before the one with this slot, about. Arrivals between may have been served already.
  std::uint32_t turns() const { return state_->turns; }
  std::uint64_t turns_before(std::uint32_t slot) const {
    const std::uint32_t first = state_->first_waiting;
    if (first == 0) return 0;
    const std::uint64_t first_arrival = slots_[first - 1].arrival;
    const std::uint64_t arrival = slots_[slot].arrival;
    return arrival > first_arrival ? std::min<std::uint64_t>(arrival - first_arrival, capacity_) : 0;
  }

  // Calls f(id, mode) for each holder. Without the guard the answer may be stale, or a mixture of two moments; never a
  // wild read.
  template <class F>
  void for_each_holder(F&& f) const {
    const std::uint32_t exclusive = state_->exclusive_holder;
    if (exclusive != 0) {
      f(exclusive, LockMode::exclusive);
    }
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      if (slots_[slot].state == holding_shared) {
        f(static_cast<std::uint32_t>(slots_[slot].id), LockMode::shared);
      }
    }
  }

  BasicLockSlot<Policy>& slot(std::uint32_t index) const { return slots_[index]; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  // Of a sleeper at the head: those that came after it by less than this may be granted the lock before it, and none
  // once it was passed over for so long, as seen when the lock is handed over.
  static constexpr std::uint64_t most_passings = 64;
  static constexpr std::uint64_t longest_passed_ns = 1'000'000;
  // How far a hand-over looks, and how many it calls.
  static constexpr std::uint32_t most_walked = 8;
  static constexpr std::uint32_t most_called = 2;

  // States of a slot.
  static constexpr std::uint32_t unused = 0;
  static constexpr std::uint32_t waiting = 1;
  static constexpr std::uint32_t holding_shared = 2;
  static constexpr std::uint32_t holding_exclusive = 3;

  template <class Matches>
  std::uint32_t probe(Contender who, Matches&& matches) const {
    // A division costs as much as the rest.
    std::uint32_t slot = who.place < capacity_ ? who.place : who.place % capacity_;
    for (std::uint32_t tried = 0; tried < capacity_; ++tried) {
      if (matches(slots_[slot])) {
        return slot;
      }
      slot = slot + 1 == capacity_ ? 0 : slot + 1;
    }
    return none;
  }

  std::uint32_t find_free(Contender who) const {
    return probe(who, [](const BasicLockSlot<Policy>& slot) { return slot.state == unused; });
  }

  std::uint32_t find(Contender who, std::uint32_t slot_state) const {
    return probe(who, [=](const BasicLockSlot<Policy>& slot) { return slot.state == slot_state && slot.id == who.id; });
  }

  // A reader, or who must wait.
  [[gnu::noinline]] Acquired acquire_slot(Contender who, LockMode mode, std::uint32_t word) {
    if (!would_grant(mode)) return enqueue(who, mode, word);
    const std::uint32_t slot = find_free(who);
    if (slot == none) {
      return {.kind = Acquired::Kind::full};
    }
    hold_shared(slot, who.id);
    return {.kind = Acquired::Kind::granted, .slot = slot};
  }

  void hold_shared(std::uint32_t slot, std::uint32_t id) {
    fill(slots_[slot], id, LockMode::shared, lock_word::granted, holding_shared);
    state_->shared_count = state_->shared_count + 1;
  }

  [[gnu::noinline]] Acquired enqueue(Contender who, LockMode mode, std::uint32_t word) {
    if (mode == LockMode::exclusive && may_be_biased()) {
      return {.kind = Acquired::Kind::biased};
    }
    const std::uint32_t slot = find_free(who);
    if (slot == none) {
      return {.kind = Acquired::Kind::full};
    }
    fill(slots_[slot], who.id, mode, word, waiting);
    append(slot);
    return {.kind = Acquired::Kind::queued, .slot = slot};
  }

  // The commit word is the last: whoever grants the slot finds no word of its last use.
  void fill(BasicLockSlot<Policy>& slot, std::uint32_t id, LockMode mode, std::uint32_t word, std::uint32_t commit) {
    // Relaxed: read by its own thread, and by who hands over the lock, under the guard as this is.
    slot.word.store(word, std::memory_order_relaxed);
    const std::uint64_t arrival = state_->arrivals + 1;
    state_->arrivals = arrival;
    slot.id = id;
    slot.wants_exclusive = mode == LockMode::exclusive ? 1 : 0;
    slot.arrival = arrival;
    slot.next = 0;
    slot.state = commit;
  }

  void append(std::uint32_t slot) {
    if (state_->last_waiting == 0) {
      state_->first_waiting = slot + 1;
    } else {
      slots_[state_->last_waiting - 1].next = slot + 1;
    }
    state_->last_waiting = slot + 1;
  }

  void unlink(std::uint32_t slot) {
    std::uint32_t before = 0;
    for (std::uint32_t at = state_->first_waiting; at != slot + 1; at = slots_[at - 1].next) {
      before = at;
    }
    const std::uint32_t next = slots_[slot].next;
    if (before == 0) {
      state_->first_waiting = next;
      state_->first_passed_ns = 0;
    } else {
      slots_[before - 1].next = next;
    }
    if (next == 0) {
      state_->last_waiting = before;
    }
  }

  void drop_exclusive() {
    const std::uint32_t slot = state_->exclusive_slot;
    state_->exclusive_holder = 0;
    state_->exclusive_slot = 0;
    if (slot != 0) {
      slots_[slot - 1].state = unused;
    }
  }

  void drop_shared(std::uint32_t slot) {
    slots_[slot].state = unused;
    state_->shared_count = state_->shared_count - 1;
  }

  // Hands the lock to the head of the queue as far as it is free, and among writers at the head to one that looks.
  template <class OnGrant>
  [[gnu::noinline]] void grant_waiting(OnGrant& on_grant) {
    while (state_->first_waiting != 0 && state_->exclusive_holder == 0) {
      std::uint32_t slot = state_->first_waiting - 1;
      const bool to_writer = slots_[slot].wants_exclusive != 0;
      if (to_writer) {
        if (state_->shared_count != 0) {
          return;
        }
        slot = choose_writer(slot, on_grant);
        state_->exclusive_holder = static_cast<std::uint32_t>(slots_[slot].id);
        slots_[slot].state = holding_exclusive;
        state_->exclusive_slot = slot + 1;
      } else {
        slots_[slot].state = holding_shared;
        state_->shared_count = state_->shared_count + 1;
      }
      unlink(slot);
      state_->turns = state_->turns + 1;
      on_grant(static_cast<std::uint32_t>(slots_[slot].id), slot);
    }
  }

  template <class OnGrant>
  void grant(OnGrant& on_grant) {
    if (state_->first_waiting != 0) [[unlikely]]
      grant_waiting(on_grant);
  }

  // Relaxed: the word's thread may change it meanwhile; who falls asleep is woken when it is granted the lock.
  std::uint32_t word(std::uint32_t slot) const { return slots_[slot].word.load(std::memory_order_relaxed); }

  // Its thread runs and sees a grant at once.
  bool looks(std::uint32_t slot) const { return word(slot) == lock_word::waiting; }

  // A proxy is not passed over, nor does it pass over a sleeper: it is rung, which costs more than to wake a thread.
  bool is_not_passed_over(std::uint32_t slot) const { return looks(slot) || word(slot) == lock_word::proxy; }

  // The first of the writers at the head whose thread looks, as far as the head may be passed over; else the head.
  // Sleepers that are passed over, or next when the head wakes up, are called so that they look in time.
  template <class OnGrant>
  std::uint32_t choose_writer(std::uint32_t head, OnGrant& on_grant) {
    if (is_not_passed_over(head)) {
      return head;
    }
    const std::uint32_t looker = find_looker(head);
    const std::uint32_t chosen = looker != none && may_pass_head() ? looker : head;
    if constexpr (requires { on_grant.call(head); }) {
      call_sleepers(head, chosen, on_grant);
    }
    return chosen;
  }

  // Behind the head, no more than so far from it, and with no reader between: of readers no later writer comes first.
  std::uint32_t find_looker(std::uint32_t head) const {
    std::uint32_t at = slots_[head].next;
    for (std::uint32_t walked = 1; at != 0 && walked < most_walked; ++walked) {
      const std::uint32_t slot = at - 1;
      if (slots_[slot].wants_exclusive == 0 || slots_[slot].arrival >= slots_[head].arrival + most_passings) {
        return none;
      }
      if (looks(slot)) {
        return slot;
      }
      at = slots_[slot].next;
    }
    return none;
  }

  bool may_pass_head() {
    const std::uint64_t now = Policy::now_ns();
    const std::uint64_t first = state_->first_passed_ns;
    if (first == 0) {
      state_->first_passed_ns = now;
      return true;
    }
    return now - first < longest_passed_ns;
  }

  template <class OnGrant>
  void call_sleepers(std::uint32_t head, std::uint32_t chosen, OnGrant& on_grant) {
    std::uint32_t called = 0;
    std::uint32_t at = head + 1;
    for (std::uint32_t walked = 0; at != 0 && walked < most_walked && called < most_called; ++walked) {
      const std::uint32_t slot = at - 1;
      if (slots_[slot].wants_exclusive == 0) {
        return;
      }
      if (slot != chosen && on_grant.call(slot)) {
        ++called;
      }
      at = slots_[slot].next;
    }
  }

  // The two commits of a hand-over to a writer are exclusive_holder and its slot's state, of a release the same in this
  // order.
  void repair_exclusive() {
    const std::uint32_t holder = state_->exclusive_holder;
    std::uint32_t exclusive_slot = 0;
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      const bool of_holder = holder != 0 && slots_[slot].id == holder;
      if (of_holder && slots_[slot].state == waiting) {
        slots_[slot].state = holding_exclusive;
      }
      if (slots_[slot].state == holding_exclusive) {
        if (of_holder) {
          exclusive_slot = slot + 1;
        } else {
          slots_[slot].state = unused;
        }
      }
    }
    state_->exclusive_slot = exclusive_slot;
  }

  void rebuild_counts_and_queue() {
    std::uint32_t shared_count = may_be_biased() ? 1 : 0;
    state_->first_waiting = 0;
    state_->last_waiting = 0;
    state_->first_passed_ns = 0;
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      shared_count += slots_[slot].state == holding_shared ? 1 : 0;
    }
    state_->shared_count = shared_count;
    // Selection by arrival: quadratic, and only after a crash.
    std::uint64_t after = 0;
    for (std::uint32_t slot = next_arrival(after); slot != none; slot = next_arrival(after)) {
      after = slots_[slot].arrival;
      slots_[slot].next = 0;
      append(slot);
    }
  }

  std::uint32_t next_arrival(std::uint64_t after) const {
    std::uint32_t best = none;
    for (std::uint32_t slot = 0; slot < capacity_; ++slot) {
      if (slots_[slot].state != waiting || slots_[slot].arrival <= after) {
        continue;
      }
      if (best == none || slots_[slot].arrival < slots_[best].arrival) {
        best = slot;
      }
    }
    return best;
  }

  BasicLockQueueState<Policy>* state_;
  BasicLockSlots<Policy> slots_;
  std::uint32_t capacity_;
};

using LockSlot = BasicLockSlot<SystemAtomics>;
using LockQueueState = BasicLockQueueState<SystemAtomics>;
using LockQueue = BasicLockQueue<SystemAtomics>;
static_assert(sizeof(LockSlot) == 32);

}  // namespace farsum
