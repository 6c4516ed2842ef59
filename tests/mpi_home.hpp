// For tests that use the MPI libraries of tools/mpi_libraries: the folder that holds those which it has installed.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace farsum::test {

inline std::filesystem::path mpi_home() {
  const auto chosen = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  if (const auto home = chosen("FARSUM_MPI_HOME"); !home.empty()) return home;
  if (const auto cache = chosen("XDG_CACHE_HOME"); !cache.empty()) return cache / "farsum/mpi";
  return chosen("HOME") / ".cache/farsum/mpi";
}

}  // namespace farsum::test
