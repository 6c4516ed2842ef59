// What a program says in an info object.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "library.hpp"

namespace farsum::mpi {

// The pairs of an info object; none for MPI_INFO_NULL.
std::map<std::string, std::string> read_info(MPI_Info info);

// What MPI_Alloc_mem and windows of allocated memory may be asked to align it to.
inline constexpr const char* alignment_key = "mpi_minimum_memory_alignment";
// Of the key's value: a power of two up to FARSUM_MOST_ALIGNMENT, else 0, for it is a hint.
std::size_t alignment_of(const std::string& value);

}  // namespace farsum::mpi
