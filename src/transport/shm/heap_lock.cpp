#include "transport/shm/heap_lock.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "os/process.hpp"

namespace farsum {

bool HeapLock::is_gone(std::uint32_t holder) const {
  // Relaxed: written before the rank could take a lock.
  const std::int32_t pid = ranks_[holder - 1].pid.load(std::memory_order_relaxed);
  return pid != 0 && pid != getpid() && os::process_has_ended(pid);
}

void HeapLock::take(std::uint32_t me) {
  while (!word_.acquire(me, [this](std::uint32_t holder) { return is_gone(holder); })) {
    const std::uint32_t holder = word_.holder();
    if (holder == 0 || !is_gone(holder) || !word_.break_dead(holder, me)) continue;
    broken_by_.store(holder, std::memory_order_relaxed);
    return;
  }
}

Status HeapLock::Guard::refusal() const {
  return {Code::peer_failed, fmt::format("rank {} of the job died while it changed the node's heap of shared memory",
                                         lock_.broken_by_.load(std::memory_order_relaxed) - 1)};
}

}  // namespace farsum
