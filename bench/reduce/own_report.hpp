// How what this machine has measured is told, behind the paper's: as tables, or as JSON lines.
#pragma once

#include <string>

#include "own_machine.hpp"

namespace bench {

// With what is not measured, and which command measures it.
std::string tables_of(const OwnMachine& own);
// An object a line: bench, case, ours, which is what the model has, unit and `measured`. None of what is not measured.
std::string lines_of(const OwnMachine& own);
// Why there are no lines of something, in whole lines; empty where all is measured.
std::string missing_of(const OwnMachine& own);

}  // namespace bench
