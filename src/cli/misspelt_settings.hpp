// Variables that look like a setting with a slip of the pen in its name: nothing reads them, and nothing else would say
// so.
#pragma once

#include <string>
#include <vector>

namespace farsum::cli {

// A sentence for each of the "NAME=value" of an environment, which ends with a null pointer.
std::vector<std::string> misspelt_settings(const char* const* environment);

}  // namespace farsum::cli
