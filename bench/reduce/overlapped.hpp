// Times a non-blocking allreduce beside computing: of all ranks, and of the middle one alone; Farsum's and those of MPI
// libraries in turn.
#pragma once

#include <string>
#include <vector>

#include "common/lab.hpp"
#include "contest.hpp"
#include "measured.hpp"

namespace bench {

[[nodiscard]] std::vector<std::string> overlapped_calls();

// For each call what it costs the computing, how often it has ended when that ends, and what of it is hidden; then how
// long the others wait for it where the middle rank computes.
[[nodiscard]] Measured measure_overlap(const ContestOptions& options, const Lab& lab, const TestHosts& hosts);

}  // namespace bench
