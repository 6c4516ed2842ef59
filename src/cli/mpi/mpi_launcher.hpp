// The programs that start MPI jobs: which one a name stands for, which options it has, and how it passes variables on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/mpi/mpi_abi.hpp"

namespace farsum::cli {

enum class LauncherKind { openmpi4, openmpi5, hydra, intel, slurm };

// For sentences: "Open MPI 4", "Hydra (MPICH)".
[[nodiscard]] const char* describe(LauncherKind kind);

// The ABI of the programs that this launcher starts, where it starts one kind only.
[[nodiscard]] std::optional<MpiAbi> usual_abi(LauncherKind kind);

// What a name such as /usr/bin/mpirun.mpich looks like before it was asked.
enum class LauncherName { none, candidate, unsupported };
[[nodiscard]] LauncherName judge_launcher_name(std::string_view path);

// What `LAUNCHER --version` printed.
[[nodiscard]] std::optional<LauncherKind> classify_launcher(std::string_view version_text);

// Runs `PATH --version` and returns what it printed.
[[nodiscard]] std::string ask_version(const std::string& path);

// How many values follow an option; vary: one or none.
enum class OptionValues { none, one, two, vary };

// Names are without dashes, for most launchers take one or two. Nothing for an option that is not in the tables.
[[nodiscard]] std::optional<OptionValues> find_option(LauncherKind kind, std::string_view name);

// Slurm's short options may have their value attached (-n4).
[[nodiscard]] bool attaches_values(LauncherKind kind);

// True where the contexts between colons each need the variables again.
[[nodiscard]] bool variables_are_per_context(LauncherKind kind);

}  // namespace farsum::cli
