// The name of a file without its folders.
#pragma once

#include <string_view>

namespace farsum::cli {

[[nodiscard]] constexpr std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace farsum::cli
