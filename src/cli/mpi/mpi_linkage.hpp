// Which MPI library a program would get: follows what it needs from file to file as the dynamic linker does, by names,
// and stops at libraries of MPI. Nothing is loaded or run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/mpi/mpi_abi.hpp"
#include "cli/mpi/mpi_elf.hpp"

namespace farsum::cli {

// Where libraries are looked for besides RPATH and RUNPATH.
struct LibrarySearch {
  std::vector<std::string> library_path;                  // LD_LIBRARY_PATH
  std::map<std::string, std::vector<std::string>> cache;  // ld.so.cache: soname -> files
  std::vector<std::string> default_folders;
};

[[nodiscard]] LibrarySearch library_search(const std::string& library_path);

// An MPI library that a program needs.
struct MpiNeed {
  std::string soname;
  std::string needed_by;
  std::string file;             // empty when it was not found
  bool is_old_openmpi = false;  // a libmpi.so.12 that is not MPICH's
};

struct Linkage {
  ElfFile program;
  std::vector<MpiNeed> mpi;            // each name once
  std::vector<std::string> mpi_parts;  // files of what belongs to an MPI besides: libmpi_mpifh, libmpifort
  std::vector<std::string> missing;    // libraries that were not found
  std::vector<std::string> runtimes;   // of sanitizers, as LD_PRELOAD may name them
};

// `path` must be readable by read_elf.
[[nodiscard]] Linkage follow_linkage(const std::string& path, const ElfFile& program, const LibrarySearch& search);

// "a:b" or "a;b" as folders; an empty one is the current folder.
[[nodiscard]] std::vector<std::string> split_folders(const std::string& text);

}  // namespace farsum::cli
