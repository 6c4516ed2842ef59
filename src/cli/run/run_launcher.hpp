// Runs a job to its end: starts the guardian, carries events to the policy and its decisions out, forwards signals and
// output.
#pragma once

#include "cli/run/run_spec.hpp"

namespace farsum::cli {

// Returns the exit code of the command. Blocks signals and changes limits of this process, so it is its last work.
[[nodiscard]] int run_job(const JobSpec& job);

}  // namespace farsum::cli
