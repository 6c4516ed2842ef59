// Unmaking windows: the ranks agree that one goes, each leaves it on its own, the last gives its extent back. Ranks
// that free windows in different orders: collectives/teardown.hpp.
#pragma once

#include <thread>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "collectives/teardown.hpp"
#include "progress/thread_waiter.hpp"
#include "protocol/exposure.hpp"
#include "runtime/node_extents.hpp"
#include "runtime/own_node.hpp"
#include "runtime/window_object.hpp"
#include "runtime/window_promotions.hpp"
#include "runtime/window_registry.hpp"

namespace farsum {

class WindowTeardown {
 public:
  struct Parts {
    OwnNode& node;
    ThreadWaiter& waiter;
    TeardownCircle& circle;
    ExposureTable& exposures;
    WindowPromotions& promotions;
    NodeExtents& extents;
    WindowRegistry& registry;
  };
  explicit WindowTeardown(const Parts& parts) : parts_(parts) {}

  // The ranks agree that the window goes; then free() is local.
  Status prepare_free(WindowObject& object, const char* call);
  Status free(WindowObject* object);
  // Called by threads that make or free windows: where there are several, one of them may be about to do what another
  // rank waits for.
  void note_thread();
  // Parts from those left behind that nobody uses any more.
  void sweep_circles();
  // Called at the end, when no window serves any more.
  void turn_all_back();

 private:
  Status agree_to_part(WindowObject& object, Code mine, const char* call, Teardown::Answer& answer);
  static void tell_traffic(WindowObject& object);
  void turn_back_in_quiet(WindowObject& object, const char* call);
  void depart(WindowObject& object);

  Parts parts_;
  ThreadMutex mutex_;
  std::thread::id thread_seen_ FARSUM_GUARDED_BY(mutex_);  // that was the first to make a window
};

}  // namespace farsum
