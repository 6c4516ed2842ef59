// `farsum info --model --measure --reductions`: serial reductions over the nodes of a job on this machine, from which
// the parameters of the model of reductions are fitted.
#pragma once

#include "base/settings.hpp"

namespace farsum::cli {

// Of 2 nodes to `most_nodes`, which are 3 or more. Leaves them where read_reduction_parameters() looks. An exit code.
[[nodiscard]] int measure_serial_reductions(const Settings& settings, int most_nodes);

}  // namespace farsum::cli
