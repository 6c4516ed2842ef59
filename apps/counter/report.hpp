// Prints outcomes: rank 0 only, as a table or as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "kernel.hpp"
#include "options.hpp"

namespace counter {

// The rank whose times are reported: paper 3's process 1, which asks process 0; the only one where there is one.
[[nodiscard]] int reported_rank(int size, int home);

void print_heading(const Options& options, int size);
void print_outcome(const Run& run, const Outcome& outcome, const Options& options);
[[nodiscard]] nlohmann::json outcome_json(const Run& run, const Outcome& outcome, const Options& options);

}  // namespace counter
