// How much of a call's time is hidden behind computing, as the benchmarks of OSU and of Intel (IMB-NBC) say it. They
// differ where the call takes longer than the computing.
#pragma once

#include <algorithm>

namespace collectives {

struct OverlapTimes {
  double pure_us = 0;       // the call alone, waited for
  double computing_us = 0;  // the computing, with a call under way
  double whole_us = 0;      // begun, computed, waited for
};

[[nodiscard]] inline double osu_percent(const OverlapTimes& times) {
  return std::max(0.0, 100 - 100 * (times.whole_us - times.computing_us) / times.pure_us);
}

[[nodiscard]] inline double imb_percent(const OverlapTimes& times) {
  const double hidden_us = times.pure_us + times.computing_us - times.whole_us;
  return 100 * std::clamp(hidden_us / std::min(times.pure_us, times.computing_us), 0.0, 1.0);
}

}  // namespace collectives
