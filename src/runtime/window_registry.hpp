// The windows of this rank: those that live, and those that it has freed while other ranks may still use them. It makes
// and unmakes none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_mutex.hpp"
#include "runtime/window_object.hpp"
#include "window/traffic.hpp"

namespace farsum {

// Any thread may call, unless it says otherwise.
class WindowRegistry {
 public:
  // So that a window that all ranks have made finds its place in the list.
  void keep_place();
  void give_place_back();
  // Where a place is kept.
  WindowObject* add(std::unique_ptr<WindowObject> object);
  // That no other window over several nodes has that this rank names. Relaxed: a counter.
  std::uint32_t next_number() { return numbered_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::unique_ptr<WindowObject> take(const WindowObject* object);

  // One that this rank has left while others have yet to come.
  void keep_left(std::unique_ptr<WindowObject> object);
  // Those of them that nobody uses any more.
  std::vector<std::unique_ptr<WindowObject>> take_ended();

  // What the hot views of all have counted, of those that are gone, too.
  Traffic hot_traffic();

  // Without the mutex: while no other thread makes or frees windows.
  const std::vector<std::unique_ptr<WindowObject>>& living() const { return living_; }
  const std::vector<std::unique_ptr<WindowObject>>& left() const { return left_; }

 private:
  std::atomic<std::uint32_t> numbered_{0};
  ThreadMutex mutex_;
  std::vector<std::unique_ptr<WindowObject>> living_ FARSUM_GUARDED_BY(mutex_);
  std::size_t being_made_ FARSUM_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<WindowObject>> left_ FARSUM_GUARDED_BY(mutex_);
  Traffic retired_ FARSUM_GUARDED_BY(mutex_);
};

}  // namespace farsum
