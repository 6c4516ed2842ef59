// The locks of targets of this node, and of their mutexes: each meets the others in the shared memory of its target's
// part. What the words of the epochs say is the caller's business; those that change under the guard of a lock change
// in what the caller passes in.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"
#include "lockfree/shared_lock.hpp"
#include "memory/atomicity.hpp"
#include "progress/waiter.hpp"
#include "protocol/window_shared.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call. Targets are ranks of the group; lock 0 is the part's own, others are of mutexes.
class LocalLocks {
 public:
  // All outlive it.
  struct Needs {
    std::span<const Rank> ranks;         // of the job, by rank of the group
    std::span<const RankWindow> shared;  // of ranks of this node
    const LockAgent& agent;              // of this process's threads
    Waiter& waiter;
    const WindowTexts& texts;
  };
  explicit LocalLocks(const Needs& needs) : needs_(needs) {}

  bool has(std::uint32_t target) const { return needs_.shared[target].is_here(); }
  const LockAgent& agent() const { return needs_.agent; }
  Contender contender() const { return {needs_.agent.id, needs_.agent.place}; }

  // All visits of a target's lock: whatever they were for, they may have granted it to a rank of another node.
  template <class F>
  auto visit(std::uint32_t target, F&& f, std::uint32_t index = 0) const {
    SharedLock<HolderDead> lock = needs_.shared[target].lock_view(needs_.agent.liveness, index);
    auto result = f(lock);
    if (lock.granted_for_another() && needs_.agent.ringer != nullptr) [[unlikely]]
      needs_.agent.ringer->ring(needs_.ranks[target]);
    return result;
  }
  // Takes the lock or queues for it, where `may_take` answers true under its guard.
  template <class MayTake>
  Requested take_or_queue(std::uint32_t target, LockMode mode, MayTake&& may_take, std::uint32_t index = 0) const {
    return visit(
        target, [&](auto& lock) { return lock.take_or_queue(contender(), mode, needs_.agent.queues_as, may_take); },
        index);
  }
  // Waits for what was queued.
  Status await(std::uint32_t target, const Requested& requested, const char* call, std::uint32_t index = 0) const;
  Status take(std::uint32_t target, LockMode mode, const char* call, std::uint32_t index = 0) const {
    return await(target,
                 take_or_queue(
                     target, mode, [] { return true; }, index),
                 call, index);
  }
  Status give_back(std::uint32_t target, LockMode mode, const char* call, std::uint32_t index = 0) const;
  Status not_held(const char* call, std::uint32_t target) const;

 private:
  Needs needs_;
};

}  // namespace farsum
