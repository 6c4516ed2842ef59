// Error handlers of the program, as the library calls them: what a call returns once one has run is the library's to
// say, and it goes by what the handler has left of the code.
#pragma once

#include "library.hpp"

namespace farsum::mpi {

// Has the library call the object's handler with `code`. What the call that failed returns then: `code` where the
// handler is none of the program's.
int call_window_handler(MPI_Win window, MPI_Errhandler handler, int code);
int call_communicator_handler(MPI_Comm comm, MPI_Errhandler handler, int code);

// Whether it is a predefined one that does not return.
bool ends_the_job(MPI_Errhandler handler);

}  // namespace farsum::mpi
