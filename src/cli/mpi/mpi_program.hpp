// Looks at the program that a job would start and says which front it needs, or why none can serve it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/mpi/mpi_abi.hpp"

namespace farsum::cli {

// How the program will be started, as far as its files depend on it.
struct ProgramSurroundings {
  std::string search_path;        // PATH
  std::string library_path;       // LD_LIBRARY_PATH
  std::string folder;             // where relative names begin; empty: here
  std::string mpi4py_abi;         // MPI4PY_MPIABI, which tells mpi4py's wheels which MPI to load
  std::optional<MpiAbi> assumed;  // for scripts and interpreters: what the launcher starts as a rule
};

struct ProgramFinding {
  std::optional<MpiAbi> abi;
  std::string sentence;                    // what was found; the reason, and what to do, when there is no ABI
  std::vector<std::string> runtimes = {};  // of sanitizers that it needs, as LD_PRELOAD may name them
};

// Looks at arguments[program] and, where that is a wrapper, at the program behind it, before `end`.
[[nodiscard]] ProgramFinding examine_program(const std::vector<std::string>& arguments, std::size_t program,
                                             std::size_t end, const ProgramSurroundings& surroundings);

// True for a program that needs an MPI library or has one linked in: whatever its name, it is no wrapper or launcher.
[[nodiscard]] bool is_mpi_program(const std::string& name, const ProgramSurroundings& surroundings);

// The file that a name stands for there; empty when there is none.
[[nodiscard]] std::string locate_program(const std::string& name, const ProgramSurroundings& surroundings);

}  // namespace farsum::cli
