// Which program serves which subcommand.
#pragma once

#include <string_view>

namespace farsum::cli {

[[nodiscard]] inline bool is_served_by_tools(std::string_view command) {
  return command == "info" || command == "bench" || command == "lab";
}

// `farsum`, and what it becomes for those.
int serve_job_commands(int argc, char** argv);
int serve_tool_commands(int argc, char** argv);

}  // namespace farsum::cli
