// MPI_Alloc_mem hands out memory that every rank of the node can address, so that windows over it need no help to be
// reached.
#include <cstring>

#include "calls.hpp"
#include "farsum.h"
#include "front.hpp"
#include "guard.hpp"

namespace farsum::mpi {
namespace {

int alloc_mem(MPI_Aint size, MPI_Info info, void* base) {
  void* memory = nullptr;
  // A size that is negative or more than the node has is the library's to refuse, in its words. The engine of a program
  // of sessions ends with its last window, which memory may outlive.
  if (size < 0 || Front::get().sessions_only() ||
      farsum_memory_allocate(static_cast<std::size_t>(size), &memory) != FARSUM_OK) [[unlikely]] {
    return library().Alloc_mem(size, info, base);
  }
  std::memcpy(base, &memory, sizeof memory);
  return MPI_SUCCESS;
}

int free_mem(void* base) {
  if (farsum_memory_free(base) == FARSUM_OK) [[likely]] {
    return MPI_SUCCESS;
  }
  return library().Free_mem(base);
}

}  // namespace

void put_memory_calls(farsum_mpi_calls& active) {
  active.Alloc_mem = guard::Alloc_mem<alloc_mem>::call;
  active.Free_mem = guard::Free_mem<free_mem>::call;
}

}  // namespace farsum::mpi
