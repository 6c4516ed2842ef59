// Errors as MPI wants them: a class, a sentence behind MPI_Error_string, and the handler of the window or communicator.
#pragma once

#include <string>

#include "farsum.h"
#include "library.hpp"

namespace farsum::mpi {

struct Window;

// The class that MPI names for an engine's status.
int error_class_of(farsum_status status);

// The code that an error handler was called with, and what the call that failed returns, now that the handler has
// returned: the code where it is a predefined one, else what the library returns then, which may be MPI_SUCCESS.
struct Raised {
  int code;
  int result;
};

// Calls the window's error handler with a code of `error_class` whose string is "CALL on window NAME: SENTENCE". The
// same for errors before there is a window, through the communicator's handler.
[[gnu::cold]] Raised tell(const Window& window, const char* call, int error_class, const std::string& sentence);
[[gnu::cold]] Raised tell(MPI_Comm comm, const char* call, int error_class, const std::string& sentence);

// What the call returns, where nobody asks for the code.
[[gnu::cold]] int raise(const Window& window, const char* call, int error_class, const std::string& sentence);
// The same for an engine call that failed in this thread just now.
[[gnu::cold]] int raise(const Window& window, const char* call, farsum_status status);
[[gnu::cold]] int raise(MPI_Comm comm, const char* call, int error_class, const std::string& sentence);

}  // namespace farsum::mpi
