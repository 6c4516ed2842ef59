// What `farsum info --model` reports: the cost model's parameters with where each is from, and what is chosen by them.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/settings.hpp"
#include "cli/info/info_machine.hpp"
#include "runtime/link_models.hpp"

namespace farsum::cli {

// The environment, as what reads settings asks it.
[[nodiscard]] inline const char* environment(const char* name) { return std::getenv(name); }

// Between hosts: towards a machine of the kind `partner`. Sections: files and complaints, a row a parameter, a row an
// operation, size, pattern and place.
[[nodiscard]] Report describe_model(const Settings& settings, std::uint32_t partner);
// The same with fewer columns and rows, for the eye.
[[nodiscard]] Report describe_model_shortly(const Settings& settings, std::uint32_t partner);

}  // namespace farsum::cli
