// Error handlers of the program, as the library calls them: what a call returns once one has run is the library's to
// say, and it goes by what the handler has left of the code.
#pragma once

#include <cstdint>

#include "library.hpp"

namespace farsum::mpi {

// The handler of an object, which keeps it; MPI_ERRHANDLER_NULL where the library does not say.
MPI_Errhandler window_handler(MPI_Win window);
MPI_Errhandler communicator_handler(MPI_Comm comm);

// Has the library call the object's handler with `code`. What the call that failed returns then: `code` where the
// handler is none of the program's.
int call_window_handler(MPI_Win window, MPI_Errhandler handler, int code);
int call_communicator_handler(MPI_Comm comm, MPI_Errhandler handler, int code);

// How many errors were told by this thread: a call during which it grows has failed, whatever it returns.
std::uint64_t errors_told();

// Whether it is a predefined one that does not return.
bool ends_the_job(MPI_Errhandler handler);

}  // namespace farsum::mpi
