#include "cli/version.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/built_commit.hpp"

namespace farsum::cli {

std::string version_text() {
  const std::string_view commit = built_commit();
  const std::string from = commit.empty() ? "" : fmt::format(" (commit {})", commit);
  return fmt::format("farsum {}{}\nbuilt with: {}", FARSUM_FULL_VERSION, from, FARSUM_BUILT_WITH);
}

}  // namespace farsum::cli
