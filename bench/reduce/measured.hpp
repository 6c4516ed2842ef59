// Times the collective calls of Farsum's C interface and of MPI libraries on this node or over test hosts, all in turn.
#pragma once

#include <string>
#include <vector>

#include "common/lab.hpp"
#include "contest.hpp"

namespace bench {

struct Measured {
  std::vector<Json> rows;
  Failures failures;
};

[[nodiscard]] std::vector<std::string> measured_calls();

// For each call a row: ours, and as `limit` the best peer's; then the order of ranks, and the dedicated agents, beside
// ours; then what of the first row is in hand-overs of a line; at the end the mean of many rows.
[[nodiscard]] Measured measure_calls(const ContestOptions& options, const Lab& lab, const TestHosts& hosts);

}  // namespace bench
