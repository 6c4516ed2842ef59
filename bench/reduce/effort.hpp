// What a simulation took.
#pragma once

#include <sys/resource.h>

#include <ctime>

namespace bench {

struct Effort {
  double processor_s = 0;
  double peak_mib = 0;  // of this process, all in all
};

// Of this process since then.
[[nodiscard]] inline Effort effort_since(std::clock_t begin) {
  const double processor_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {processor_s, static_cast<double>(used.ru_maxrss) / 1024};
}

}  // namespace bench
