// Says which path each kind of operation takes on this machine, and why. A pure function of what was found out.
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "cli/info/info_probe.hpp"
#include "cost/model.hpp"

namespace farsum::cli {

struct PathFacts {
  AttachProbe attach;
  int yama = -1;
  Settings settings;
  std::string held_threads_refusal = {};  // of probe_held_threads()
  cost::Thresholds model = {};
};

struct PathRow {
  std::string memory;
  std::string operations;
  std::string path;
  std::string reason;
};

[[nodiscard]] std::vector<PathRow> explain_paths(const PathFacts& facts);

// What holds for all rows; empty when nothing was forced.
[[nodiscard]] std::string forced_path_note(const Settings& settings);

}  // namespace farsum::cli
