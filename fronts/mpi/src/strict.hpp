// A check for tests: with FARSUM_MPI_STRICT=1 the library's own one-sided routines abort, with their name, on any
// window but the backing windows of the front. A suite that passes so has met Farsum in every call.
#pragma once

#include "library.hpp"

namespace farsum::mpi {

// Whether the environment asks for it.
bool strict_wanted();

// Puts the checks into the library's functions as the front sees them, and over all one-sided calls of the program that
// the front has not put its own over yet.
void make_strict(farsum_mpi_library& library, farsum_mpi_calls& active);

}  // namespace farsum::mpi
