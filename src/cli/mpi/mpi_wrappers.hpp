// Programs that start another one named on their command line (env, time, numactl, gdb --args ...): says where that one
// is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace farsum::cli {

struct WrappedProgram {
  std::size_t position = 0;         // of the inner program, in the arguments
  bool clears_environment = false;  // env -i, or env -u LD_PRELOAD
  bool sets_preload = false;        // env LD_PRELOAD=...
};

// True for the name, with or without folders, of a wrapper in the table.
[[nodiscard]] bool is_wrapper(const std::string& program);

// `arguments[wrapper]` is a wrapper; looks at [wrapper, end). Empty when no program follows.
[[nodiscard]] std::optional<WrappedProgram> look_through(const std::vector<std::string>& arguments, std::size_t wrapper,
                                                         std::size_t end);

}  // namespace farsum::cli
