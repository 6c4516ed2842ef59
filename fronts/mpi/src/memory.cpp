// MPI_Alloc_mem hands out memory that every rank of the node can address, so that windows over it need no help to be
// reached.
#include <cstring>

#include "calls.hpp"
#include "farsum.h"
#include "front.hpp"
#include "guard.hpp"
#include "info.hpp"
#include "library_traits.hpp"

namespace farsum::mpi {
namespace {

farsum_status allocate(std::size_t bytes, MPI_Info info, void** memory) {
  if (info == MPI_INFO_NULL) [[likely]] {
    return farsum_memory_allocate(bytes, memory);
  }
  char text[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  library().Info_get(info, alignment_key, MPI_MAX_INFO_VAL, text, &is_there);
  const std::size_t alignment = is_there != 0 ? alignment_of(text) : 0;
  return alignment == 0 ? farsum_memory_allocate(bytes, memory)
                        : farsum_memory_allocate_aligned(bytes, alignment, memory);
}

int alloc_mem(MPI_Aint size, MPI_Info info, void* base) {
  void* memory = nullptr;
  if (size == 0 && !library_traits().empty_memory_has_address) [[unlikely]] {
    std::memcpy(base, &memory, sizeof memory);
    return MPI_SUCCESS;
  }
  // A size that is negative or more than the node has is the library's to refuse, in its words. The engine of a program
  // of sessions ends with its last window, which memory may outlive.
  if (size < 0 || Front::get().sessions.are_alone() ||
      allocate(static_cast<std::size_t>(size), info, &memory) != FARSUM_OK) [[unlikely]] {
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
