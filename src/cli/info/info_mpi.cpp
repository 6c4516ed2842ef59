// Looks for files only, but for the version, which the libraries' mpirun is asked for.
#include "cli/info/info_mpi.hpp"

#include <unistd.h>

#include "cli/mpi/mpi_abi.hpp"
#include "cli/mpi/mpi_installations.hpp"
#include "cli/own_folder.hpp"

namespace farsum::cli {

Report describe_mpi_fronts() {
  Report rows = Report::array();
  for (const MpiAbi abi : mpi_abis) {
    const std::string library = front_library(own_front_folder(), abi);
    const bool built = access(library.c_str(), R_OK) == 0;
    rows.push_back({{"mpi_front", name_of(abi)},
                    {"serves", describe(abi)},
                    {"built", built ? "yes" : "no"},
                    {"library", built ? library : ""}});
  }
  return rows;
}

Report describe_mpi_libraries() {
  Report rows = Report::array();
  for (const MpiInstallation& found : find_mpi_installations()) {
    rows.push_back({{"mpi_library", found.name},
                    {"version", version_of(found)},
                    {"abi", name_of(found.abi)},
                    {"launcher", found.mpirun.front()},
                    {"library", found.library}});
  }
  return rows;
}

}  // namespace farsum::cli
