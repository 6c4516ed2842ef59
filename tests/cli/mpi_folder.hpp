// A folder for one test of `farsum mpi`: a copy of the command with fronts beside it, launchers that only say what they
// were given, and small programs that need an MPI library by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/captured_run.hpp"
#include "cli/mpi/mpi_plan.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli::test {

class MpiFolder {
 public:
  MpiFolder();

  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }
  [[nodiscard]] std::string front(MpiAbi abi) const { return front_library(path("lib"), abi); }

  // An executable script.
  std::string add_script(const std::string& name, const std::string& text) const;
  // A launcher that answers --version and else prints its own LD_PRELOAD and its arguments, one a line.
  std::string add_launcher(const std::string& name, const std::string& version) const;
  // A shared library of this soname, in the folder mpi/.
  std::string add_library(const std::string& soname, const std::string& source = "int farsum_test_library;") const;
  // A program that needs libraries of the folder mpi/; `flags` go to the compiler.
  std::string add_program(const std::string& name, const std::vector<std::string>& sonames,
                          const std::string& source = "int main(void) { return 0; }",
                          const std::vector<std::string>& flags = {"-Wl,-rpath,$ORIGIN/mpi"}) const;
  // A request for this folder's fronts: PATH and nothing else in its environment.
  [[nodiscard]] LaunchRequest request(const std::vector<std::string>& command) const;
  // `farsum mpi ARGUMENTS...` with its real exit; standard output and error together.
  [[nodiscard]] CapturedRun farsum_mpi(const std::vector<std::string>& arguments) const;

 private:
  const TemporaryFolder own_;
  const std::filesystem::path root_ = own_.path();
};

// True where programs can be compiled.
[[nodiscard]] bool has_compiler();

}  // namespace farsum::cli::test
