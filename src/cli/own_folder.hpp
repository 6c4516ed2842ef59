// Where this program lies, and with it what was built beside it.
#pragma once

#include <filesystem>

namespace farsum::cli {

[[nodiscard]] inline std::filesystem::path own_folder() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}

[[nodiscard]] inline std::filesystem::path own_library_folder() { return own_folder().parent_path() / "lib"; }

}  // namespace farsum::cli
