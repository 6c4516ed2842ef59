// What `farsum info` reports about MPI: the fronts that were built, and the libraries that it sees here.
#pragma once

#include "cli/info/info_machine.hpp"

namespace farsum::cli {

// Tables: one row a front, built or not; one row an MPI library.
[[nodiscard]] Report describe_mpi_fronts();
[[nodiscard]] Report describe_mpi_libraries();

}  // namespace farsum::cli
