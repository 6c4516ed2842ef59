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
  const auto add = [&](const MpiInstallation& found, const std::string& environment) {
    rows.push_back({{"mpi_library", found.name},
                    {"version", version_of(found)},
                    {"abi", name_of(found.abi)},
                    {"environment", environment},
                    {"launcher", found.mpirun.empty() ? "" : found.mpirun.front()},
                    {"library", found.library}});
  };
  // First what the user has made active.
  for (const std::string& folder : python_environments(own_folder().parent_path())) {
    for (const MpiInstallation& found : find_mpi_of_environment(folder)) add(found, folder);
  }
  for (const MpiInstallation& found : find_mpi_installations()) add(found, "");
  return rows;
}

}  // namespace farsum::cli
