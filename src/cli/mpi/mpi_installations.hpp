// The MPI libraries of this machine that Farsum knows by place: Debian's, those that tools/mpi_libraries installs, and
// those of the Python environment that is active.
#pragma once

#include <string>
#include <vector>

#include "cli/mpi/mpi_abi.hpp"

namespace farsum::cli {

struct MpiInstallation {
  std::string name;                 // as `farsum lab --mpi` takes it
  MpiAbi abi{};                     // of programs built with its compiler
  std::vector<std::string> mpirun;  // a path, and options that a small machine needs
  std::string library;              // the file of libmpi
  std::string library_folder;       // for LD_LIBRARY_PATH; empty where the system finds it anyway
  std::string version_text;         // what the launcher says of itself; empty where it was not asked yet
};

// Debian's and those of tools/mpi_libraries, as far as they are there.
[[nodiscard]] std::vector<MpiInstallation> find_mpi_installations();

// The folders of the Python environments that count: the active one (VIRTUAL_ENV, CONDA_PREFIX) and the one that
// `own_prefix` is, if it is one.
[[nodiscard]] std::vector<std::string> python_environments(const std::string& own_prefix);

// The MPI libraries of such an environment: wheels and conda's packages, whose launchers are in its `bin`, and what an
// mpi4py that was built there is linked to. `mpirun` is empty where the environment has no launcher for it.
[[nodiscard]] std::vector<MpiInstallation> find_mpi_of_environment(const std::string& folder);

// The first number with a dot in what `mpirun --version` prints; "unknown" without one, or without a launcher.
[[nodiscard]] std::string version_of(const MpiInstallation& installation);

}  // namespace farsum::cli
