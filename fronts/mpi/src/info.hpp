// What a program says in an info object.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "library.hpp"

namespace farsum::mpi {

// The pairs of an info object; none for MPI_INFO_NULL.
std::map<std::string, std::string> read_info(MPI_Info info);

// The value of this key in the communicator's info; nothing where the library does not have the key.
std::optional<std::string> info_of(MPI_Comm comm, const char* key);

// The kinds of memory that MPI objects support, by name (system, mpi, cuda, ...), and those that the program says it
// uses with one (MPI-4.1, section 12.4.3).
inline constexpr const char* kinds_key = "mpi_memory_alloc_kinds";
inline constexpr const char* asserted_kinds_key = "mpi_assert_memory_alloc_kinds";
// Whether all that is asserted, be it restricted (mpi:alloc_mem), is among those that are supported.
bool supports_kinds(const std::string& supported, const std::string& asserted);

// What MPI_Alloc_mem and windows of allocated memory may be asked to align it to.
inline constexpr const char* alignment_key = "mpi_minimum_memory_alignment";
// Of the key's value: a power of two up to FARSUM_MOST_ALIGNMENT, else 0, for it is a hint.
std::size_t alignment_of(const std::string& value);

}  // namespace farsum::mpi
