// Finds its way through a launcher's command line: where each context (the parts between colons) has its options and
// its program. Changes nothing and starts nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "cli/mpi/mpi_launcher.hpp"

namespace farsum::cli {

// An option as the user wrote it; positions are indices into the arguments.
struct GivenOption {
  std::string name;  // without dashes and without "=value"
  std::size_t position = 0;
  std::vector<std::string> values;
  bool joined = false;  // its value stands in the same argument: --export=ALL
  bool known = true;
};

// One program of the job. [begin, end) are its arguments, options included; `end` is a colon or the end.
struct LaunchContext {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<GivenOption> options;
  std::optional<std::size_t> program;  // nothing when no program was found
  std::vector<std::string> runtimes;   // of sanitizers, that the ranks' LD_PRELOAD is to begin with; from who looks
};

// True when a token names something that could be started.
using IsProgram = FunctionRef<bool(const std::string& token)>;

// `arguments` are those behind the launcher's name. An option that no table holds is taken for a flag when an option,
// or a program, follows; else the next argument is its value.
[[nodiscard]] std::vector<LaunchContext> read_launch(LauncherKind kind, const std::vector<std::string>& arguments,
                                                     IsProgram is_program);

}  // namespace farsum::cli
