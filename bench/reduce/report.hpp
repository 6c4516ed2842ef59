// How the predictions are told: as tables with what the model misses, or as JSON lines.
#pragma once

#include <string>

#include "predictions.hpp"

namespace bench {

std::string tables_of(const cost::ReductionModel& model, const Predictions& predictions);

// An object a line: bench, case, ours and unit, `paper` where the paper states a number, then what tells cases apart.
std::string lines_of(const cost::ReductionModel& model, const Predictions& predictions);

}  // namespace bench
