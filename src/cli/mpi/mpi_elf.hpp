// Reads what the dynamic linker would from one ELF file of this machine. Looks at bytes only: nothing is loaded or run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace farsum::cli {

struct ElfFile {
  bool needs_linker = false;  // names an interpreter, as dynamically linked programs do
  std::string soname;
  std::vector<std::string> needed;
  std::string rpath;                     // folders separated by colons, as written
  std::string runpath;                   // the same; takes the place of rpath
  std::vector<std::string> defined_mpi;  // the entry points of MPI that it defines itself: MPI_Init and its kind
  bool has_openmpi_handles = false;      // tells a libmpi.so.12 of Open MPI 1 from MPICH's
};

// Empty when the file cannot be read, is no ELF file, or is for another kind of machine.
[[nodiscard]] std::optional<ElfFile> read_elf(const std::string& path);

}  // namespace farsum::cli
