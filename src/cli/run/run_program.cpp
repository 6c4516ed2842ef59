// The search behind find_program.
#include "cli/run/run_program.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "cli/exit_codes.hpp"

namespace farsum::cli {

namespace {

bool is_folder(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

FoundProgram check_path(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return {{},
            fmt::format("cannot run {}: {}", path, missing ? "there is no such file" : std::strerror(errno)),
            missing ? exit_not_found : exit_not_executable};
  }
  if (is_folder(path)) return {{}, fmt::format("cannot run {}: it is a folder", path), exit_not_executable};
  if (access(path.c_str(), X_OK) != 0) {
    return {{}, fmt::format("cannot run {}: it is not executable (chmod +x {})", path, path), exit_not_executable};
  }
  return {path, {}, 0};
}

}  // namespace

FoundProgram find_program(const std::string& name, const std::string& search_path) {
  if (name.empty()) return {{}, "cannot run a program with an empty name", exit_not_found};
  if (name.find('/') != std::string::npos) return check_path(name);
  FoundProgram refused{
      {}, fmt::format("cannot find {} in PATH (write ./{} for a program in this folder)", name, name), exit_not_found};
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    FoundProgram found = check_path(path);
    if (!found.path.empty()) return found;
    if (found.exit_code == exit_not_executable && !is_folder(path)) refused = found;
  }
  return refused;
}

}  // namespace farsum::cli
