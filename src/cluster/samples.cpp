#include "cluster/samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace farsum::cluster {

Samples measure(const Machine& machine, const Lists& lists, std::size_t calls) {
  Cluster cluster(machine, lists);
  Samples samples;
  samples.each_ns.reserve(calls);
  std::int64_t first_start_ns = 0;
  std::int64_t last_end_ns = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    const Call call = cluster.call();
    if (i == 0) first_start_ns = call.start_ns;
    last_end_ns = call.end_ns;
    samples.each_ns.push_back(call.end_ns - call.start_ns);
  }
  samples.averaged_us = static_cast<double>(last_end_ns - first_start_ns) / 1000 / static_cast<double>(calls);
  samples.letters = cluster.letters();
  std::sort(samples.each_ns.begin(), samples.each_ns.end());
  return samples;
}

Spread spread_of(const std::vector<std::int64_t>& each_ns, double drop) {
  const std::size_t kept = each_ns.size() - static_cast<std::size_t>(drop * static_cast<double>(each_ns.size()));
  // Exact, so that equal samples have no deviation.
  const std::int64_t sum_ns =
      std::accumulate(each_ns.begin(), each_ns.begin() + static_cast<std::ptrdiff_t>(kept), std::int64_t{0});
  const double mean_ns = static_cast<double>(sum_ns) / static_cast<double>(kept);
  double squares = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const double off_ns = static_cast<double>(each_ns[i]) - mean_ns;
    squares += off_ns * off_ns;
  }
  return {mean_ns / 1000, std::sqrt(squares / static_cast<double>(kept)) / 1000};
}

double share_within(const std::vector<std::int64_t>& each_ns, std::int64_t width_ns) {
  std::size_t most = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < each_ns.size(); ++i) {
    while (each_ns[i] - each_ns[first] > width_ns) ++first;
    most = std::max(most, i - first + 1);
  }
  return static_cast<double>(most) / static_cast<double>(each_ns.size());
}

}  // namespace farsum::cluster
