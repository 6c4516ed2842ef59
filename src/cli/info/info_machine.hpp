// What `farsum info` reports about the build and the machine, as one ordered document: a section is an object of name
// and value.
#pragma once

#include <nlohmann/json.hpp>

#include "base/settings.hpp"

namespace farsum::cli {

using Report = nlohmann::ordered_json;

[[nodiscard]] Report describe_build(const Settings& settings);
[[nodiscard]] Report describe_machine();
// What the kernel permits, and the limits of this process.
[[nodiscard]] Report describe_permissions();

}  // namespace farsum::cli
