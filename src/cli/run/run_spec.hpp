// What `farsum run` was asked to start: the parsed command line, checked and resolved. Nothing here has an effect.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace farsum::cli {

inline constexpr int max_ranks = 1024;

// Numbers of processing units, as the kernel counts them.
using CpuList = std::vector<int>;

struct JobSpec {
  int ranks = 1;
  std::string program_path;            // what is executed
  std::vector<std::string> arguments;  // argv, its first as the user typed it
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<CpuList> bindings;  // rank r runs on bindings[r % size]; empty: wherever the launcher may
  bool tag_output = false;
  std::optional<std::chrono::milliseconds> timeout;
};

}  // namespace farsum::cli
