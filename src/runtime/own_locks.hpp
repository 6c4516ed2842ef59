// As whom this process's threads take locks of memory and windows.
#pragma once

#include <atomic>
#include <cstdint>

#include "liveness/peer_watch.hpp"
#include "memory/lock_agent.hpp"
#include "progress/thread_waiter.hpp"
#include "runtime/own_node.hpp"
#include "window/asked_locks.hpp"

namespace farsum {

class OwnLocks {
 public:
  struct Parts {
    const OwnNode& node;
    const PeerWatch& watch;
    const ThreadWaiter& waiter;
    const LockFreePermits& permits;
    const Ringer& ringer;
    std::atomic<std::uint64_t>& contention;
  };
  explicit OwnLocks(const Parts& parts) : parts_(parts) {}

  // Asked for when it is known whether the node is crowded.
  LockAgent agent() {
    return {.id = parts_.node.rank() + 1,
            .liveness = &parts_.watch,
            .contention = &parts_.contention,
            .permits = &parts_.permits,
            .ringer = &parts_.ringer,
            .asked = &asked_,
            .queues_as = parts_.waiter.would_look() ? lock_word::waiting : lock_word::asleep_for_good};
  }

 private:
  Parts parts_;
  AskedLocks asked_;
};

}  // namespace farsum
