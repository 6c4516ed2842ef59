// How the simulated cluster's figures are told: as a table with what it misses, or as JSON lines.
#pragma once

#include <string>
#include <vector>

#include "cluster/paper_rows.hpp"

namespace bench {

std::string table_of(const std::vector<farsum::cluster::PaperRow>& rows);

// An object a line: bench, case, ours and unit, `paper` and `ratio` where the paper states a number, `basis` (fitted,
// predicted, or assumed), what is included, then what tells cases apart.
std::string lines_of(const std::vector<farsum::cluster::PaperRow>& rows);

}  // namespace bench
