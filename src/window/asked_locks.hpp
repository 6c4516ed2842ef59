// Locks of ranks of other nodes that this process has asked for and not waited for. A thread that has such waits for
// them before it takes another lock, whatever window or mutex that is of: of two ranks that take the same locks in the
// same order each could else be granted the one that the other waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_mutex.hpp"
#include "base/units.hpp"
#include "os/thread_mark.hpp"
#include "protocol/request_state.hpp"

namespace farsum {

// Any thread may call. Of a thread that has ended they stay until they are answered, or their epochs closed.
class AskedLocks {
 public:
  // Whether there are any. Relaxed: a thread knows of its own, and whoever gives another's back comes after it in the
  // program's order.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

  // The calling thread is about to ask for the lock: the answer to the last such question is no answer any more.
  // `granted` is borrowed until it is forgotten.
  void add(RequestState& granted, Rank owner) {
    const std::uint64_t thread = os::thread_mark();
    const MutexGuard lock(mutex_);
    // Relaxed: the mutex orders it.
    granted.done.store(false, std::memory_order_relaxed);
    asked_.push_back({&granted, owner, thread});
    note_count();
  }

  void forget(const RequestState& granted) {
    const MutexGuard lock(mutex_);
    std::erase_if(asked_, [&](const Asked& asked) { return asked.granted == &granted; });
    note_count();
  }

  // Whose answer the thread with this mark has to wait for.
  std::optional<Rank> awaited(std::uint64_t thread) {
    if (!any()) return {};
    const MutexGuard lock(mutex_);
    // Those of any thread go: while there are some, no lock is taken the short way. Acquire pairs with the release in
    // OriginEngine::finish_job.
    std::erase_if(asked_, [](const Asked& asked) { return asked.granted->done.load(std::memory_order_acquire); });
    note_count();
    const auto found =
        std::find_if(asked_.begin(), asked_.end(), [thread](const Asked& asked) { return asked.thread == thread; });
    return found == asked_.end() ? std::nullopt : std::optional(found->owner);
  }

 private:
  struct Asked {
    const RequestState* granted;
    Rank owner;
    std::uint64_t thread;
  };

  // Relaxed: see any().
  void note_count() FARSUM_REQUIRES(mutex_) { count_.store(asked_.size(), std::memory_order_relaxed); }

  ThreadMutex mutex_;
  std::vector<Asked> asked_ FARSUM_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
};

}  // namespace farsum
