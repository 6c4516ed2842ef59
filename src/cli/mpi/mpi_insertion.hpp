// How each launcher passes variables to the ranks, and how what the user passes himself is left in force.
#pragma once

#include <string>
#include <vector>

#include "cli/mpi/mpi_arguments.hpp"
#include "cli/mpi/mpi_plan.hpp"

namespace farsum::cli {

struct Insertion {
  std::string refusal;
  std::vector<std::string> arguments;  // those behind the launcher's name
  Variables own_environment;           // for the launcher itself; never holds LD_PRELOAD
};

struct InsertionRequest {
  LauncherKind kind{};
  std::vector<std::string> arguments;
  std::vector<LaunchContext> contexts;
  std::string library;        // goes in front of LD_PRELOAD
  std::string user_preload;   // LD_PRELOAD of the environment
  Variables variables;        // besides; what the user's own options set stays as he set it
  Variables overriding;       // the same, but stronger than the user's options
  std::string slurm_exports;  // SLURM_EXPORT_ENV
};

[[nodiscard]] Insertion insert_variables(const InsertionRequest& request);

// The value that options of a context give to a variable for the ranks.
[[nodiscard]] std::optional<std::string> passed_value(LauncherKind kind, const LaunchContext& context,
                                                      const std::string& name);

}  // namespace farsum::cli
