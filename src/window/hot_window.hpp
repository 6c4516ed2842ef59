// The hot path: operations that are checked and finished in the caller, with no allocation and no lock but the stripe
// that guards the bytes; the system is called only where another holds that stripe or it is to be revoked. Whatever is
// not plain answers false and takes the long way, which ends in Window::operate and finds out what is wrong.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/units.hpp"
#include "lockfree/shared_lock.hpp"
#include "memory/apply.hpp"
#include "ops/atomics.hpp"
#include "ops/kernels.hpp"
#include "os/thread_mark.hpp"
#include "protocol/origin/engine.hpp"
#include "window/asked_locks.hpp"

namespace farsum {

// What TargetView::open says of the one access epoch that can include a target. Operations are allowed above no_epoch.
// Whoever changes no_epoch to something else owns the word until the epoch ends. For the epoch of a lock in shared
// memory that is done under the guard of that lock, which threads that lock one target pass one by one. It is done by a
// compare-and-swap for epochs of fence and start and for locks of other nodes' ranks, with which no thread under a
// guard may race, and for locks of all by bias, with which one may (EpochWords::open_with_all).
enum AccessEpoch : std::int32_t {
  epoch_changing = -1,  // a lock is being taken or given back
  no_epoch = 0,
  active_epoch = 1,         // of fence or start
  passive_epoch = 1 << 16,  // of locks from here on
  locked_shared = passive_epoch,
  locked_exclusive,
  locked_with_all,
  // These are of locks that take nothing: the program has said that nobody else's is in the way.
  unchecked_lock,
  unchecked_with_all,
};

// What the hot path reads of one target. All that an operation needs lies in the first line; the counts, which it
// writes, and what locking needs lie in the second. A view that was never used is zero in all bytes, so that the arena
// of all windows' views takes no room in the library's file.
struct alignas(cache_line_bytes) TargetView {
  std::byte* memory = nullptr;     // the first direct_bytes of the part are here
  std::uint64_t direct_bytes = 0;  // 0: nothing is finished here by the hot path
  AtomicDomain domain;
  std::atomic<std::int32_t> open{no_epoch};  // see AccessEpoch
  std::atomic<std::uint32_t> unfenced{0};    // see note_stores
  Outstanding outstanding;
  // Written by this process's threads; approximate when several write at once. See count_word.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> hot_operations{0};
  std::atomic<std::uint64_t> hot_bytes{0};
  std::atomic<std::uint64_t> hot_words{0};  // operations of 8 bytes, counted apart: one addition less in the fastest
  // The same of operations that were not finished with the target's memory mapped here.
  std::atomic<std::uint64_t> other_operations{0};
  std::atomic<std::uint64_t> other_bytes{0};
  SharedLockState* lock = nullptr;  // null: it is never taken here
  Rank owner = 0;                   // of the job
  // In a window's first view only: whether the window as a whole allows locks now. See EpochRules::settle_lockable.
  std::atomic<bool> locks_allowed{false};
};
static_assert(sizeof(TargetView) == 2 * cache_line_bytes);
static_assert(offsetof(TargetView, outstanding) + sizeof(Outstanding) == cache_line_bytes);

// seq_cst: the stores of earlier operations are in memory before anything after the flush is read. A locked instruction
// here, a quarter of what mfence costs.
inline void flush_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// On x86 every locked instruction is such a fence by itself, so that a flush that is followed by one needs no other,
// and stores reach memory in program order: see note_stores.
#if defined(__x86_64__)
inline constexpr bool locked_instructions_are_fences = true;
inline constexpr bool stores_stay_in_order = true;
#else
inline constexpr bool locked_instructions_are_fences = false;
inline constexpr bool stores_stay_in_order = false;
#endif

// An operation has stored to the target's memory; called behind those stores.
//
// A flush promises two things: what was issued to the target is in its memory before anything after the flush is read,
// and nothing else; a program that wants its own loads and stores ordered calls sync, which is a fence always. Loads
// and locked instructions are through when they have run, so that only plain stores wait for a fence, and a flush with
// none since the last one needs none. Two threads may share the word: a thread that finds it clear after its own
// operations reads the clearing of a thread whose store came later in the order of this word than its own mark, which
// then, and with it all that it stored earlier, is in memory; and operations of another thread that come before this
// flush by the program's own synchronisation were in memory when that was seen. Both hold because x86 keeps stores in
// order; elsewhere every flush is a fence.
inline void note_stores(TargetView& view) {
  // The mark is not looked at first: one that is there may be about to be cleared for stores before these.
  view.unfenced.store(1, std::memory_order_release);
}

// Load and store instead of an addition: a locked instruction would cost as much as the operation. Relaxed: a
// statistic.
inline void count_word(TargetView& view) {
  view.hot_words.store(view.hot_words.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
inline void count_direct(TargetView& view, std::uint64_t bytes) {
  view.hot_operations.store(view.hot_operations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  view.hot_bytes.store(view.hot_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

inline void count_other(TargetView& view, std::uint64_t bytes) {
  // Relaxed: a statistic.
  view.other_operations.fetch_add(1, std::memory_order_relaxed);
  view.other_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// What the hot path reads of a window besides its views, small enough to lie beside the handle. The values stay as they
// are while the window lives. What is asked here takes no view, so that a call whose other parts are in registers does
// not put them into memory for it.
struct HotParts {
  std::uint32_t size = 0;
  std::uint32_t lock_id = 0;
  const ops::KernelSet* kernels = nullptr;
  const LockAgent* agent = nullptr;
  LockFreePermit* permit = nullptr;  // of this process; null: its threads take locks always
  bool aggregates = false;

  // The stripe, after a short look if it is not free at once; false when its holder keeps it, as one that was preempted
  // does.
  bool acquire(StripeLock& lock) const {
    if (lock.try_acquire(lock_id)) [[likely]]
      return true;
    agent->contention->fetch_add(1, std::memory_order_relaxed);
    return lock.try_for_a_while(lock_id);
  }

  bool has_permit() const { return permit != nullptr && permit->belongs_to(os::own_thread_mark); }

  // Whether this thread may update single elements of the stripe by atomics until it leaves its permit.
  [[gnu::always_inline]] bool enter(const StripeLock& lock) const {
    if (!lock.is_lock_free() || permit == nullptr) return false;
    if (!permit->belongs_to(os::own_thread_mark) && !claim_permit()) [[unlikely]]
      return false;
    return permit->enter(lock);
  }

  // How a thread may update a single element now.
  enum class Access : std::uint8_t {
    by_atomics,  // until it leaves its permit
    under_lock,  // until it releases the stripe
    refused,     // only the long way
  };

  // Waits for a stripe that is held.
  [[gnu::always_inline]] Access access(StripeLock& lock) const {
    if (enter(lock)) return Access::by_atomics;
    if (lock.try_acquire(lock_id)) [[likely]]
      return Access::under_lock;
    return wait_for_access(lock);
  }

  void release_after_single(StripeLock& lock) const {
    if (lock.count_single()) [[unlikely]]
      return go_lock_free(lock);
    lock.release();
  }

 private:
  // A stripe may become lock-free while threads wait for it, and where many do, it is they who have made it so. They
  // enter it then: on the long way each would revoke that again.
  [[gnu::noinline]] Access wait_for_access(StripeLock& lock) const {
    // Relaxed: a statistic.
    agent->contention->fetch_add(1, std::memory_order_relaxed);
    const auto is_dead = [&](std::uint32_t holder) { return holder != 0 && rank_is_dead(*agent, holder - 1); };
    while (!lock.acquire_slow(lock_id, is_dead)) {
      if (enter(lock)) return Access::by_atomics;
      // It was lock-free, and another thread has the permit; or its holder is dead.
      if (lock.is_lock_free() || is_dead(lock.holder())) return Access::refused;
    }
    return Access::under_lock;
  }

  // Claims the permit of a process where nobody has it, or had it a thread that has ended. Another thread revokes the
  // stripe, beside which this is cheap.
  [[gnu::noinline, gnu::cold]] bool claim_permit() const {
    return permit->claim(os::thread_mark(), [](std::uint64_t thread) { return os::has_ended(thread); });
  }

  // Single elements go without the lock from here on, as far as all ranks can.
  [[gnu::noinline]] void go_lock_free(StripeLock& lock) const {
    const bool may = permit != nullptr && agent->permits != nullptr && agent->permits->all_ready() && claim_permit();
    if (may) return lock.release_lock_free();
    lock.forget_singles();
    lock.release();
  }
};

// A window's views and what goes with them.
struct HotWindow {
  TargetView* views = nullptr;
  const HotParts& parts;

  bool put(std::uint32_t target, std::uint64_t offset, const void* origin, std::size_t bytes) const {
    TargetView* view = find(target, offset, bytes);
    if (view == nullptr) return false;
    if (bytes == 8) {
      std::memcpy(view->memory + offset, origin, 8);
      count_word(*view);
    } else if (bytes != 0) {
      // Within one's own part both sides may be one.
      std::memmove(view->memory + offset, origin, bytes);
      count_direct(*view, bytes);
    }
    note_stores(*view);
    return true;
  }

  bool get(std::uint32_t target, std::uint64_t offset, void* result, std::size_t bytes) const {
    TargetView* view = find(target, offset, bytes);
    if (view == nullptr) return false;
    if (bytes == 8) {
      std::memcpy(result, view->memory + offset, 8);
      count_word(*view);
    } else if (bytes != 0) {
      std::memmove(result, view->memory + offset, bytes);
      count_direct(*view, bytes);
    }
    return true;
  }

  // Type and operator have been found legal together; scaled_sum does not come here. `result` may be null.
  [[gnu::always_inline]] bool reduce(std::uint32_t target, std::uint64_t offset, const void* operand, void* result,
                                     std::uint64_t count, ops::ElementType type, ops::Operator op) const {
    const std::uint64_t element_bytes = ops::size_of(type);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes == 0) [[unlikely]]
      return false;
    TargetView* view = find(target, offset, bytes);
    if (view == nullptr) return false;
    std::byte* address = view->memory + offset;
    if (view->domain.atomics_only) {
      if (count != 1 || !ops::is_lockable(type)) return false;
      count_direct(*view, bytes);
      ops::atomic_apply(address, operand, result, type, op, nullptr);
      // All but a write without a result are locked instructions.
      if (op == ops::Operator::replace) note_stores(*view);
      return true;
    }
    if (bytes > view->domain.bytes_left_in_stripe(offset))
      return reduce_stripes(*view, offset, operand, result, bytes, type, op);
    StripeLock& lock = view->domain.lock_of(offset);
    if (is_single(address, bytes, type)) return reduce_single(*view, lock, address, operand, result, type, op);
    if (!parts.acquire(lock)) return false;
    apply(address, operand, result, count, type, op);
    lock.release();
    count_direct(*view, bytes);
    note_stores(*view);
    return true;
  }

  // The same for one element of 8 bytes and a sum: the shared counter's operation, and an update of a distributed
  // array, with all sizes known here. `type` is an integer or float64. Only where nothing is to be waited for or
  // claimed; it calls nothing, so that its caller saves few registers.
  [[gnu::always_inline]] bool sum_word(std::uint32_t target, std::uint64_t offset, const void* operand, void* result,
                                       ops::ElementType type) const {
    TargetView* view = find_word(target, offset);
    if (view == nullptr) [[unlikely]]
      return false;
    std::byte* address = view->memory + offset;
    if (view->domain.atomics_only) {
      fetch_sum(address, operand, result, type);
    } else {
      const StripeLock& lock = view->domain.lock_of(offset);
      if (!parts.has_permit() || !lock.is_lock_free() || !parts.permit->enter(lock)) [[unlikely]]
        return false;
      fetch_sum(address, operand, result, type);
      parts.permit->leave();
    }
    count_word(*view);
    return true;
  }

  // The same where the stripe is not lock-free or this thread has no permit yet: by atomics where it may enter after
  // all, else under the stripe's lock.
  [[gnu::always_inline]] bool sum_word_under_lock(std::uint32_t target, std::uint64_t offset, const void* operand,
                                                  void* result, ops::ElementType type) const {
    TargetView* view = find_word(target, offset);
    if (view == nullptr || view->domain.atomics_only) [[unlikely]]
      return false;
    std::byte* address = view->memory + offset;
    StripeLock& lock = view->domain.lock_of(offset);
    const HotParts::Access access = parts.access(lock);
    if (access == HotParts::Access::refused) [[unlikely]]
      return false;
    if (access == HotParts::Access::by_atomics) [[unlikely]] {
      fetch_sum(address, operand, result, type);
      parts.permit->leave();
    } else {
      if (type == ops::ElementType::float64)
        plain_sum<double>(address, operand, result);
      else
        plain_sum<std::uint64_t>(address, operand, result);
      parts.release_after_single(lock);
      note_stores(*view);
    }
    count_word(*view);
    return true;
  }

  // One element of a lockable type.
  bool compare_and_swap(std::uint32_t target, std::uint64_t offset, const void* expected, const void* desired,
                        void* result, ops::ElementType type) const {
    const std::uint64_t bytes = ops::size_of(type);
    TargetView* view = find(target, offset, bytes);
    if (view == nullptr || view->domain.atomics_only || bytes > view->domain.bytes_left_in_stripe(offset)) [[unlikely]]
      return false;
    std::byte* address = view->memory + offset;
    StripeLock& lock = view->domain.lock_of(offset);
    const HotParts::Access access = is_single(address, bytes, type) ? parts.access(lock)
                                    : parts.acquire(lock)           ? HotParts::Access::under_lock
                                                                    : HotParts::Access::refused;
    if (access == HotParts::Access::refused) [[unlikely]]
      return false;
    if (access == HotParts::Access::by_atomics) [[likely]] {
      ops::atomic_compare_and_swap(address, expected, desired, result, type);
      parts.permit->leave();
    } else {
      ops::plain_compare_and_swap(address, expected, desired, result, type);
      parts.release_after_single(lock);
      note_stores(*view);
    }
    count_direct(*view, bytes);
    return true;
  }

  // Does the flush where nothing is under way to any target, and an epoch includes every one. It is worth it however
  // many there are: the long way walks over them twice, and reads more of each. A list of those that were used would
  // cost each operation an instruction.
  bool flush_all() const {
    if (parts.aggregates) return false;
    std::uint32_t unfenced = 0;
    for (std::uint32_t target = 0; target < parts.size; ++target) {
      if (!is_clean(views[target])) return false;
      unfenced |= views[target].unfenced.load(std::memory_order_relaxed);
    }
    if (stores_stay_in_order && unfenced == 0) return true;
    for (std::uint32_t target = 0; target < parts.size; ++target) {
      views[target].unfenced.store(0, std::memory_order_relaxed);
    }
    flush_fence();
    return true;
  }

  // With nothing under way to the target, flush is a fence at most. Outside a lock's epoch the long way says whether it
  // may.
  bool flush(std::uint32_t target) const {
    if (target >= parts.size || parts.aggregates) return false;
    TargetView& view = views[target];
    if (!is_clean(view)) return false;
    // Relaxed: see note_stores.
    if (stores_stay_in_order && view.unfenced.load(std::memory_order_relaxed) == 0) return true;
    view.unfenced.store(0, std::memory_order_relaxed);
    flush_fence();
    return true;
  }

  // A lock of a target in no epoch, with none of another node to wait for first. Where it is taken, or others wait,
  // this thread is queued behind them, the target's word is its own, and it goes on with TargetLocks::await_queued. The
  // rest goes the long way, refusals too: they are told as refused.
  Requested lock(std::uint32_t target, LockMode mode) const {
    constexpr Requested the_long_way{.kind = Requested::Kind::refused};
    if (target >= parts.size || views[target].lock == nullptr) return the_long_way;
    TargetView& view = views[target];
    // Relaxed: a program that calls on the same window from two threads orders its epochs itself.
    if (!views[0].locks_allowed.load(std::memory_order_relaxed)) return the_long_way;
    if (parts.agent->asked != nullptr && parts.agent->asked->any()) return the_long_way;
    HotLock target_lock(*view.lock, parts.size);
    // Relaxed: the guard orders threads of this process that lock this target; others are ordered by the program.
    return target_lock.take_or_queue_once(
        {parts.lock_id, parts.agent->place}, mode, parts.agent->queues_as,
        [&] { return view.open.load(std::memory_order_relaxed) == no_epoch; },
        [&](Requested::Kind kind) {
          if (kind == Requested::Kind::granted) [[likely]]
            view.open.store(mode == LockMode::exclusive ? locked_exclusive : locked_shared, std::memory_order_relaxed);
          else if (kind == Requested::Kind::queued)
            view.open.store(epoch_changing, std::memory_order_relaxed);
        });
  }

  // Gives back what lock() took, with nothing under way to the target.
  bool unlock(std::uint32_t target) const {
    if (target >= parts.size || views[target].lock == nullptr) return false;
    TargetView& view = views[target];
    const std::int32_t open = view.open.load(std::memory_order_relaxed);
    if (open != locked_shared && open != locked_exclusive) return false;
    // The guard is taken by a locked instruction.
    if (!flush_before_unlock(target)) return false;
    HotLock target_lock(*view.lock, parts.size);
    // Relaxed: as in lock().
    const bool unlocked = target_lock.try_unlock_once(
        {parts.lock_id, parts.agent->place}, open == locked_exclusive ? LockMode::exclusive : LockMode::shared,
        [&] { return view.open.load(std::memory_order_relaxed) == open; },
        [&] { view.open.store(no_epoch, std::memory_order_relaxed); });
    if (target_lock.granted_for_another() && parts.agent->ringer != nullptr) [[unlikely]]
      parts.agent->ringer->ring(view.owner);
    return unlocked;
  }

  // flush() and flush_all() for a caller whose next step is a locked instruction.
  bool flush_all_before_unlock() const {
    if (parts.aggregates) return false;
    for (std::uint32_t target = 0; target < parts.size; ++target) {
      if (!is_clean(views[target])) return false;
    }
    if constexpr (!locked_instructions_are_fences) flush_fence();
    return true;
  }
  bool flush_before_unlock(std::uint32_t target) const {
    if (parts.aggregates || !is_clean(views[target])) return false;
    if constexpr (!locked_instructions_are_fences) flush_fence();
    return true;
  }

 private:
  // Where others may hold it by bias, an exclusive lock goes the long way.
  using HotLock = SharedLock<NobodyDies, NoLockBias>;

  static bool is_clean(const TargetView& view) {
    // Acquire pairs with the release in OriginEngine::finish_job.
    return view.open.load(std::memory_order_relaxed) >= passive_epoch &&
           view.outstanding.count.load(std::memory_order_acquire) == 0 &&
           view.outstanding.failure.load(std::memory_order_relaxed) == Code::ok;
  }

  TargetView* find(std::uint32_t target, std::uint64_t offset, std::uint64_t bytes) const {
    if (target >= parts.size) [[unlikely]]
      return nullptr;
    TargetView& view = views[target];
    // Relaxed: epoch calls of this thread come before in program order; other threads synchronise among themselves.
    if (view.open.load(std::memory_order_relaxed) <= no_epoch) [[unlikely]]
      return nullptr;
    if (offset > view.direct_bytes || bytes > view.direct_bytes - offset) [[unlikely]]
      return nullptr;
    return &view;
  }

  // An aligned word, which lies in one stripe.
  [[gnu::always_inline]] TargetView* find_word(std::uint32_t target, std::uint64_t offset) const {
    TargetView* view = find(target, offset, sizeof(std::uint64_t));
    if (view == nullptr || (reinterpret_cast<std::uintptr_t>(view->memory + offset) & 7) != 0) [[unlikely]]
      return nullptr;
    return view;
  }

  // Whether the processor's atomics can update it.
  static bool is_single(const std::byte* address, std::uint64_t bytes, ops::ElementType type) {
    return bytes == ops::size_of(type) && ops::is_lockable(type) &&
           (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0;
  }

  // One element, by the processor's atomics where the stripe is lock-free.
  [[gnu::noinline]] bool reduce_single(TargetView& view, StripeLock& lock, std::byte* address, const void* operand,
                                       void* result, ops::ElementType type, ops::Operator op) const {
    const std::uint64_t bytes = ops::size_of(type);
    const HotParts::Access access = parts.access(lock);
    if (access == HotParts::Access::refused) return false;
    if (access == HotParts::Access::by_atomics) {
      ops::atomic_apply(address, operand, result, type, op, nullptr);
      parts.permit->leave();
      count_direct(view, bytes);
      // All but a write without a result are locked instructions.
      if (op == ops::Operator::replace) note_stores(view);
      return true;
    }
    apply(address, operand, result, 1, type, op);
    parts.release_after_single(lock);
    count_direct(view, bytes);
    note_stores(view);
    return true;
  }

  // The caller holds the stripe's lock.
  [[gnu::always_inline]] void apply(std::byte* address, const void* operand, void* result, std::uint64_t count,
                                    ops::ElementType type, ops::Operator op) const {
    if (result == nullptr)
      parts.kernels->bulk(type, op)(address, operand, count, nullptr);
    else
      parts.kernels->fetch(type, op)(address, operand, result, count, nullptr);
  }

  // What spans stripes. False when a holder died on the way: the long way says so, and the job is over.
  [[gnu::noinline]] bool reduce_stripes(TargetView& view, std::uint64_t offset, const void* operand, void* result,
                                        std::uint64_t bytes, ops::ElementType type, ops::Operator op) const {
    const Reduction reduction = make_reduction(*parts.kernels, type, op, nullptr, bytes);
    std::uint64_t progress = 0;
    count_direct(view, bytes);
    const Applied applied =
        apply_reduction(view.domain, *parts.agent, view.memory, offset, static_cast<const std::byte*>(operand),
                        static_cast<std::byte*>(result), bytes, reduction, progress);
    note_stores(view);
    return applied == Applied::done;
  }

  [[gnu::always_inline]] static void fetch_sum(std::byte* address, const void* operand, void* result,
                                               ops::ElementType type) {
    if (type != ops::ElementType::float64) [[likely]]
      fetch_sum_of<std::uint64_t>(address, operand, result);
    else
      fetch_sum_of<double>(address, operand, result);
  }
  template <class T>
  [[gnu::always_inline]] static void fetch_sum_of(std::byte* address, const void* operand, void* result) {
    T addend;
    std::memcpy(&addend, operand, sizeof addend);
    const T old = ops::atomic_fetch_sum(address, addend);
    if (result != nullptr) std::memcpy(result, &old, sizeof old);
  }
  template <class T>
  [[gnu::always_inline]] static void plain_sum(std::byte* address, const void* operand, void* result) {
    T addend;
    T old;
    std::memcpy(&addend, operand, sizeof addend);
    std::memcpy(&old, address, sizeof old);
    const T sum = old + addend;
    std::memcpy(address, &sum, sizeof sum);
    if (result != nullptr) std::memcpy(result, &old, sizeof old);
  }
};

}  // namespace farsum
