// Locks of ranks of other nodes that this process has asked for and not waited for. A thread that has such waits for
// them before it takes another lock, whatever window or mutex that is of: of two ranks that take the same locks in the
// same order each could else be granted the one that the other waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/origin_engine.hpp"
#include "os/thread_mark.hpp"

namespace farsum {

// Any thread may call.
class AskedLocks {
 public:
  // Whether there are any; of its own a thread knows.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

  // By the calling thread. `granted` is borrowed until it is forgotten, or has been answered and looked for.
  void add(const RequestState& granted, Rank owner) {
    const std::lock_guard lock(mutex_);
    asked_.push_back({&granted, owner, os::thread_mark()});
    note_count();
  }

  void forget(const RequestState& granted) {
    if (!any()) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(asked_, [&](const Asked& asked) { return asked.granted == &granted; });
    note_count();
  }

  // Whose answer the calling thread has to wait for.
  std::optional<Rank> awaited() {
    if (!any()) return {};
    const std::lock_guard lock(mutex_);
    const std::uint64_t thread = os::thread_mark();
    // Acquire pairs with the release in OriginEngine::finish_job.
    std::erase_if(asked_, [thread](const Asked& asked) {
      return asked.thread == thread && asked.granted->done.load(std::memory_order_acquire);
    });
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

  // Relaxed, as in any(): a thread looks for what it has added itself.
  void note_count() { count_.store(asked_.size(), std::memory_order_relaxed); }

  std::mutex mutex_;
  std::vector<Asked> asked_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace farsum
