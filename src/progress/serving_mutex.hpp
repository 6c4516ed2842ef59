// Serving has one thread at a time: the agent, or for moments one that attends in its place. The agent comes first.
#pragma once

#include <atomic>
#include <mutex>

namespace farsum {

class ServingMutex {
 public:
  // Waits for the turn of serving that is under way at most.
  void lock() {
    // Relaxed, here and below: a turn more or less of the others' does not matter.
    is_wanted_.store(true, std::memory_order_relaxed);
    mutex_.lock();
    is_wanted_.store(false, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }
  // It fails where somebody waits for it.
  bool try_lock() { return !is_wanted_.load(std::memory_order_relaxed) && mutex_.try_lock(); }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_wanted_{false};
};

}  // namespace farsum
