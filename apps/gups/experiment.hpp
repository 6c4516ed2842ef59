// Runs one way, with the bare loop in turn where asked for, each run timed and verified.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../common/job.hpp"
#include "farsum.h"
#include "options.hpp"

namespace gups {

// One timed and verified run, the same on every rank.
struct Measurement {
  double gups;
  std::uint64_t wrong_words;
};

struct Result {
  Way way;
  int ranks;
  std::uint64_t high_water;  // largest of all ranks
  std::vector<Measurement> runs;
  std::vector<Measurement> baselines;         // one per run, or none
  std::vector<farsum_statistics> statistics;  // by rank, over all runs of the way, without baselines

  [[nodiscard]] double median_gups() const;
  [[nodiscard]] std::optional<double> median_ratio() const;  // to the bare loop
  [[nodiscard]] std::uint64_t most_wrong_words() const;
  [[nodiscard]] bool is_right(std::uint64_t words) const;
};

// Collective. FARSUM_PATH was set before the job began.
[[nodiscard]] Result run_experiment(Way way, const apps::Job& job, const Options& options);

}  // namespace gups
