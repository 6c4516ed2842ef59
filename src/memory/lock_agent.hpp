// Who asks for locks of a window and of its stripes: what its waiting may look like, and whom it asks about the others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "lockfree/lock_free_permit.hpp"
#include "lockfree/lock_queue.hpp"
#include "memory/atomicity.hpp"

namespace farsum {

class AskedLocks;

// The permits of a node's ranks, by rank of the job.
struct LockFreePermits {
  std::vector<LockFreePermit*> of_ranks;

  bool all_ready() const {
    return std::all_of(of_ranks.begin(), of_ranks.end(),
                       [](const LockFreePermit* permit) { return permit->is_ready(); });
  }
};

// Who asks for a lock, and what it does when the lock is not free.
struct LockAgent {
  std::uint32_t id = 0;                              // rank + 1
  bool may_wait = true;                              // the agent may not: it gets `busy` and comes back
  const Liveness* liveness = nullptr;                // null: nobody dies (simulator)
  std::atomic<std::uint64_t>* contention = nullptr;  // counts stripes that were not free at once; may be null
  const LockFreePermits* permits = nullptr;      // of all who may be in a lock-free stripe; null: there is never one
  const Ringer* ringer = nullptr;                // null: no lock is asked for on behalf of others
  AskedLocks* asked = nullptr;                   // by threads of this process; null: no target is of another node
  std::uint32_t place = 0;                       // where shared locks keep its slot: its rank in the window
  std::uint32_t queues_as = lock_word::waiting;  // its slot's first word in the queue of a shared lock
};

}  // namespace farsum
