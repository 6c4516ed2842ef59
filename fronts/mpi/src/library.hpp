// The MPI library behind the front: its functions, by pointer. A direct call would come back through the preloaded stubs.
#pragma once

#include <mpi.h>

#include "calls.h"

namespace farsum::mpi {

// Set once when the front starts, before any other part of it runs.
extern farsum_mpi_library the_library;

inline const farsum_mpi_library& library() { return the_library; }

}  // namespace farsum::mpi
