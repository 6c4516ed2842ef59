// How much single calls differ in length beside other work: Farsum's and those of MPI libraries, one cell each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "contest.hpp"
#include "measured.hpp"

namespace bench {

struct SteadyOptions {
  int hogs = 2;  // busy loops beside all cells
  std::size_t most_calls = 100'000;
};

inline constexpr double usual_steady_seconds = 60;

// The calls that are measured where none are named.
[[nodiscard]] std::vector<std::string> steady_calls(const ContestOptions& options);

// For each call the standard deviation without the longest hundredth, and the mean; first with the usual priority, then
// with a raised one where that may be had. Each first row has the whole distributions.
[[nodiscard]] Measured measure_steadiness(const ContestOptions& options, const SteadyOptions& steadiness,
                                          const Lab& lab, const TestHosts& hosts);

}  // namespace bench
