// Arguments as execv and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace farsum::cli {

// Points into `command`, which must outlive it.
[[nodiscard]] inline std::vector<char*> argument_vector(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

}  // namespace farsum::cli
