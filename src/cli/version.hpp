// What `farsum --version` says.
#pragma once

#include <string>

namespace farsum::cli {

// The version, the commit that was built where the sources were a repository's, and what was built in.
[[nodiscard]] std::string version_text();

}  // namespace farsum::cli
