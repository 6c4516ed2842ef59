// Turns a user's command line into the one that is started: finds launcher and program, chooses the front, and inserts
// the launcher's own options that pass it on. Reads files and asks the launcher for its version; starts nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/mpi/mpi_abi.hpp"
#include "cli/mpi/mpi_launcher.hpp"

namespace farsum::cli {

using Variables = std::map<std::string, std::string>;

struct LaunchRequest {
  std::vector<std::string> command;  // as the user wrote it
  std::optional<MpiAbi> abi;         // from --abi; else found out
  Variables settings;                // set by options of `farsum mpi`
  Variables environment;             // of this process
  std::string libraries;             // the folder of the fronts
};

struct LaunchPlan {
  std::string refusal;  // why nothing can be started; the rest is empty then
  std::string program;  // the file to execute
  std::vector<std::string> command;
  Variables own_environment;     // to set for the started process itself: the launcher, or the program without one
  Variables passed_environment;  // what the ranks get
  std::vector<std::pair<std::string, std::string>> findings;  // what was found out, for --verbose
};

[[nodiscard]] LaunchPlan plan_launch(const LaunchRequest& request);

// As a shell reads it back.
[[nodiscard]] std::string shell_words(const std::vector<std::string>& command);

}  // namespace farsum::cli
