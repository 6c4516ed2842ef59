// The names that mpi_abi.hpp knows.
#include "cli/mpi/mpi_abi.hpp"

#include <fmt/format.h>

namespace farsum::cli {

const char* name_of(MpiAbi abi) {
  switch (abi) {
    case MpiAbi::mpich:
      return "mpich";
    case MpiAbi::openmpi:
      return "openmpi";
    case MpiAbi::standard:
      return "abi";
  }
  return "";
}

const char* describe(MpiAbi abi) {
  switch (abi) {
    case MpiAbi::mpich:
      return "MPICH's ABI (MPICH, Intel MPI)";
    case MpiAbi::openmpi:
      return "Open MPI's ABI";
    case MpiAbi::standard:
      return "MPI-5's standard ABI";
  }
  return "";
}

std::optional<MpiAbi> mpi_abi_called(std::string_view name) {
  for (const MpiAbi abi : mpi_abis) {
    if (name == name_of(abi)) return abi;
  }
  return std::nullopt;
}

std::optional<MpiAbi> mpi_abi_of_library(std::string_view soname) {
  if (soname == "libmpi.so.12" || soname == "libmpich.so.12") return MpiAbi::mpich;
  if (soname == "libmpi.so.40") return MpiAbi::openmpi;
  if (soname.starts_with("libmpi_abi.so")) return MpiAbi::standard;
  return std::nullopt;
}

bool is_mpi_library(std::string_view soname) {
  return soname.starts_with("libmpi.so") || soname.starts_with("libmpich.so") || soname.starts_with("libmpi_abi.so");
}

std::string front_library(const std::string& libraries, MpiAbi abi) {
  return fmt::format("{}/libfarsum_mpi_{}.so", libraries, name_of(abi));
}

}  // namespace farsum::cli
