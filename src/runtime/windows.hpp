// The windows of this rank: made, used by name of their objects, and freed. What is theirs alone lies in parts that it
// owns: the list of windows, what unmakes them, and the regions of dynamic ones.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "liveness/peer_watch.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/dynamic_regions.hpp"
#include "runtime/path_models.hpp"
#include "runtime/window_object.hpp"
#include "runtime/window_registry.hpp"
#include "runtime/window_services.hpp"
#include "runtime/window_teardown.hpp"
#include "runtime/window_wish.hpp"

namespace farsum {

class Windows {
 public:
  struct Parts {
    WindowServices services;
    const PeerWatch& watch;
    AgentSide& agent;
    PathModels& models;
    TeardownCircle& circle;
  };
  explicit Windows(const Parts& parts);

  // Of all ranks of the group.
  Result<WindowObject*> allocate(Group& group, std::uint64_t bytes, const WindowOptions& options);
  Result<WindowObject*> adopt(Group& group, void* memory, std::uint64_t bytes, const WindowOptions& options);
  Result<WindowObject*> create_dynamic(Group& group, const WindowOptions& options);
  Status attach(WindowObject& object, void* memory, std::uint64_t bytes);
  Status detach(WindowObject& object, const void* memory);
  // The ranks agree that the window goes; then free() is local.
  Status prepare_free(WindowObject& object, const char* call = "farsum_window_prepare_free");
  Status free(WindowObject* object);

  // What the hot views of all windows have counted, of those that are gone, too.
  Traffic hot_traffic() { return registry_.hot_traffic(); }

  // ---- the end ----

  // pending where this rank has something open at a window.
  Status find_open() const;
  // That ends, as far as it goes.
  void abandon_all();
  // No window serves any more; promoted memory turns back.
  void turn_all_back() { teardown_.turn_all_back(); }

 private:
  Result<WindowObject*> make(Group& group, WindowWish& wish, const WindowOptions& options);
  Status begin(WindowWish& wish, const WindowOptions& options);

  Parts parts_;
  WindowRegistry registry_;
  WindowTeardown teardown_;
  DynamicRegions regions_;
};

}  // namespace farsum
