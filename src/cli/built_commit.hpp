// Which commit this was built from; cmake/built_commit.cmake writes the answer at each build.
#pragma once

#include <string_view>

namespace farsum::cli {

// Empty where the sources were no repository's.
[[nodiscard]] std::string_view built_commit();

}  // namespace farsum::cli
