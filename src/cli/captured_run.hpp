// Runs a program to its end and keeps what it wrote.
#pragma once

#include <string>
#include <vector>

namespace farsum::cli {

enum class ErrorOutput { passed_on, kept };

struct CapturedRun {
  int exit_code = 0;  // 128 + signal when one killed it; 127 when it could not be started
  std::string out;
};

// `command.front()` is a path; stdin is empty.
[[nodiscard]] CapturedRun run_captured(const std::vector<std::string>& command, ErrorOutput errors);

}  // namespace farsum::cli
