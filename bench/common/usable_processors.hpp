// How many processors this process may use.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace bench {

// Processors' worth of time that the control group at `file` (cpu.max) grants; 0 where it says nothing.
inline int processors_of_quota(const std::string& file) {
  std::string quota;
  double period = 0;
  std::ifstream(file) >> quota >> period;
  if (quota.empty() || quota == "max" || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period)));
}

inline int usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const int allowed = sched_getaffinity(0, sizeof usable, &usable) == 0 ? std::max(1, CPU_COUNT(&usable)) : 1;
  // The group as it is seen from within; its parents' quotas are not.
  const int granted = processors_of_quota("/sys/fs/cgroup/cpu.max");
  return granted == 0 ? allowed : std::min(allowed, granted);
}

}  // namespace bench
