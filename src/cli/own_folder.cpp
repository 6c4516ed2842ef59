#include "cli/own_folder.hpp"

namespace farsum::cli {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

// Not installed, they lie in a build folder.
fs::path own_front_folder() {
  const fs::path installed = (own_folder() / FARSUM_INSTALLED_FRONTS).lexically_normal();
  std::error_code failed;
  return fs::exists(installed, failed) ? installed : own_folder().parent_path() / "lib";
}

}  // namespace farsum::cli
