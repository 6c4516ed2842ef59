// How the files of Window visit a lock in the shared memory of its target's node.
#pragma once

#include "window/window.hpp"

namespace farsum {

// All visits of a target's lock: whatever they were for, they may have granted it to a rank of another node.
template <class F>
auto Window::with_lock(std::uint32_t target, F&& f, std::uint32_t index) const {
  SharedLock<HolderDead> lock = parts_.shared[target].lock_view(parts_.lock_agent.liveness, index);
  auto result = f(lock);
  if (lock.granted_for_another() && parts_.lock_agent.ringer != nullptr) [[unlikely]]
    parts_.lock_agent.ringer->ring(parts_.ranks[target]);
  return result;
}

}  // namespace farsum
