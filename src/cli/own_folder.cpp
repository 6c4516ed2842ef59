#include "cli/own_folder.hpp"

namespace farsum::cli {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

// Not installed, they lie in a build folder.
fs::path own_front_folder() {
  std::error_code failed;
  const bool installed = fs::exists(own_folder() / FARSUM_INSTALLED_LIBRARY, failed);
  return installed ? (own_folder() / FARSUM_INSTALLED_FRONTS).lexically_normal() : own_folder().parent_path() / "lib";
}

}  // namespace farsum::cli
