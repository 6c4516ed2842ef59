// Prints results: rank 0 only, as a table or as JSON.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "experiment.hpp"
#include "options.hpp"

namespace gups {

void print_heading(const Options& options, int ranks);
void print_result(const Result& result, const Options& options);
[[nodiscard]] nlohmann::json result_json(const Result& result, const Options& options);

}  // namespace gups
