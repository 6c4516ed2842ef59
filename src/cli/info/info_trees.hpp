// `farsum info --model --measure --trees`: reductions over nodes of this machine by trees of several degrees, beside
// what the model predicts of them. What is measured here never becomes a parameter of the model.
#pragma once

#include <optional>

#include "base/settings.hpp"
#include "cli/info/info_machine.hpp"

namespace farsum::cli {

// Says what degree the model chooses for each vector before any tree is timed. Rows of vectors and degrees, and the
// regret; the times are left where read_measured_trees() looks. Nothing where a node has failed, which says why.
[[nodiscard]] std::optional<Report> measure_trees(const Settings& settings, int nodes);

}  // namespace farsum::cli
