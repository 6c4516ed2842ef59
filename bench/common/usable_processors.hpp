// How many processors this process may use.
#pragma once

#include <sched.h>

#include <algorithm>

#include "os/cgroups.h"

namespace bench {

inline int usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const int allowed = sched_getaffinity(0, sizeof usable, &usable) == 0 ? std::max(1, CPU_COUNT(&usable)) : 1;
  farsum_cgroup_bound quota;
  farsum_cgroup_read_quota("", &quota);
  return quota.processors == 0 ? allowed : std::min(allowed, static_cast<int>(quota.processors));
}

}  // namespace bench
