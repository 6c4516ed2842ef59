// The binary interfaces that MPI libraries come in. A front is built for each; a program needs the one it was linked
// for.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace farsum::cli {

enum class MpiAbi { mpich, openmpi, standard };

inline constexpr std::array<MpiAbi, 3> mpi_abis{MpiAbi::mpich, MpiAbi::openmpi, MpiAbi::standard};

// As it stands in names of files and in options: mpich, openmpi, abi.
[[nodiscard]] const char* name_of(MpiAbi abi);
// For sentences.
[[nodiscard]] const char* describe(MpiAbi abi);
[[nodiscard]] std::optional<MpiAbi> mpi_abi_called(std::string_view name);

// What the name of a shared library says: libmpi.so.12 and libmpich.so.12, libmpi.so.40, libmpi_abi.so.*.
[[nodiscard]] std::optional<MpiAbi> mpi_abi_of_library(std::string_view soname);

// True for the name of any MPI library, those that have no front among them: libmpi.so.20.
[[nodiscard]] bool is_mpi_library(std::string_view soname);

// The preloaded library of an ABI in the folder `libraries`.
[[nodiscard]] std::string front_library(const std::string& libraries, MpiAbi abi);

}  // namespace farsum::cli
