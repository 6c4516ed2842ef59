// The MPI libraries of this machine that Farsum knows by place: Debian's, and those that tools/mpi_libraries installs.
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
};

// Those that are there.
[[nodiscard]] std::vector<MpiInstallation> find_mpi_installations();

// The first number with a dot in what `mpirun --version` prints; "unknown" without one.
[[nodiscard]] std::string version_of(const MpiInstallation& installation);

}  // namespace farsum::cli
