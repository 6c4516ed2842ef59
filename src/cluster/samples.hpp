// The times of many calls, as paper 5 reports them: their average by the clock around all of them, and how those of
// single calls are spread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/cluster.hpp"

namespace farsum::cluster {

struct Samples {
  double averaged_us = 0;             // from the first start to the last end, by calls
  std::vector<std::int64_t> each_ns;  // each from its own start to its own end, sorted
  std::uint64_t letters = 0;
};

Samples measure(const Machine& machine, const Lists& lists, std::size_t calls);

struct Spread {
  double mean_us = 0;
  double deviation_us = 0;
};
// Of sorted samples without the longest, `drop` of them (0 to below 1).
Spread spread_of(const std::vector<std::int64_t>& each_ns, double drop);
// The largest share of sorted samples within any stretch of that width.
double share_within(const std::vector<std::int64_t>& each_ns, std::int64_t width_ns);

}  // namespace farsum::cluster
