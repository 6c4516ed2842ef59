// What `farsum info --model` reports of the model of reductions: where it is from, tables 1 and 2 of paper 5 for this
// machine, how far its serial reductions are from the times that it was fitted to, and how nodes reduce.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "cli/info/info_machine.hpp"

namespace farsum::cli {

// By the file in that folder, if any, and in a job of which rank 0 has these settings. Sections: "reductions", and rows
// of each table.
[[nodiscard]] Report describe_reductions(const std::string& folder, const Settings& settings);

}  // namespace farsum::cli
