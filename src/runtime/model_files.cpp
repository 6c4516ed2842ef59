#include "runtime/model_files.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace farsum {
namespace {

constexpr std::size_t longest_file = 65536;

}  // namespace

std::optional<std::string> read_model_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(longest_file, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Status write_model_text(const std::string& folder, const std::string& path, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  // The name is of this process only, so that two that measure at once do not write into one file.
  const std::string fresh = fmt::format("{}.{}.new", path, getpid());
  std::ofstream file(fresh, std::ios::binary);
  file << text << "\n";
  file.close();
  if (file && std::rename(fresh.c_str(), path.c_str()) == 0) return {};
  std::filesystem::remove(fresh, failed);
  return {Code::system, fmt::format("cannot write {}", path)};
}

}  // namespace farsum
