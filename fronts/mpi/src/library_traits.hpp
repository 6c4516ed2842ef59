// In what libraries differ though the standard leaves it open, and programs have come to rely on: the front does as the
// library below does. All such differences are here; each is known by the library's name or asked of it once.
#pragma once

#include <optional>
#include <string>

#include "library.hpp"

namespace farsum::mpi {

struct LibraryTraits {
  // Of a rank that asks for 0 bytes: Open MPI gives the part of a window an address, but that of
  // MPI_Win_allocate_shared with alloc_shared_noncontig, and gives NULL for MPI_Alloc_mem; MPICH and its kin give the
  // part NULL, and memory an address.
  bool empty_parts_have_addresses = false;
  bool empty_memory_has_address = true;
  // MPICH and its kin take an MPI_Win_detach of what was never attached, unless that is NULL.
  bool detaches_anything = true;
  // Open MPI makes a window of MPI_Win_allocate_shared with any displacement unit, as of ranks without data; its other
  // windows and all of MPICH and its kin need one of 1 byte or more.
  bool shared_windows_take_any_unit = false;
};

// Of the library that this process runs. Any thread may call, once the library was initialised.
const LibraryTraits& library_traits();

// The kinds of memory that it supports for all that is derived from the World Model (mpi_memory_alloc_kinds); nothing
// where it follows an MPI that has none. Any thread may call, once the program has called MPI_Init. Throws
// std::bad_alloc.
const std::optional<std::string>& memory_kinds_of_world();

// Whether the library follows this version of MPI or a later one. Any thread may call.
bool library_follows(int version, int subversion);

// Whether a call that failed returns MPI_SUCCESS once an error handler of the program has run, as in MPICH 5, or what
// the handler has left of the code, as in all others. The library is asked when this is first called, which a thread
// does that may call it; `self` is a communicator of this process alone.
bool library_succeeds_after_handlers(MPI_Comm self);

}  // namespace farsum::mpi
