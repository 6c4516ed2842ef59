// The MPI library behind the front: its functions, by pointer. A direct call would come back through the preloaded
// stubs.
#pragma once

#include <mpi.h>

#include <type_traits>

#include "calls.h"

namespace farsum::mpi {

// Set once when the front starts, before any other part of it runs.
extern farsum_mpi_library the_library;
// Of dlopen, for symbols that only one library has.
extern void* the_library_handle;

inline const farsum_mpi_library& library() { return the_library; }

// The call whose counts are int, or its twin with MPI_Count.
template <class Count, class Plain, class Large>
auto of_count(Plain plain, Large large) {
  if constexpr (std::is_same_v<Count, int>) {
    return plain;
  } else {
    return large;
  }
}

}  // namespace farsum::mpi
