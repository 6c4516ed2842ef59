// The list of places; tools/mpi_libraries --list knows the same.
#include "cli/mpi/mpi_installations.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "cli/mpi/mpi_launcher.hpp"
#include "cli/mpi/mpi_linkage.hpp"

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;

fs::path wheels_home() {
  const auto value = [](const char* name) {
    return std::string(std::getenv(name) != nullptr ? std::getenv(name) : "");
  };
  if (const std::string home = value("FARSUM_MPI_HOME"); !home.empty()) return home;
  if (const std::string cache = value("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "farsum" / "mpi";
  return fs::path(value("HOME")) / ".cache" / "farsum" / "mpi";
}

// More ranks than cores are normal here; Open MPI refuses them, and root, unless told.
std::vector<std::string> launch_words(const fs::path& mpirun, MpiAbi abi) {
  std::vector<std::string> words{mpirun.string()};
  if (abi == MpiAbi::openmpi) {
    words.emplace_back("--oversubscribe");
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  }
  return words;
}

struct Place {
  const char* name;
  MpiAbi abi;
  const char* soname;
};

}  // namespace

std::vector<MpiInstallation> find_mpi_installations() {
  constexpr Place system_places[] = {{"mpich", MpiAbi::mpich, "libmpich.so.12"},
                                     {"openmpi", MpiAbi::openmpi, "libmpi.so.40"}};
  constexpr Place wheel_places[] = {{"mpich5", MpiAbi::mpich, "libmpi.so.12"},
                                    {"mpich5-abi", MpiAbi::standard, "libmpi_abi.so.1"},
                                    {"openmpi5", MpiAbi::openmpi, "libmpi.so.40"},
                                    {"impi", MpiAbi::mpich, "libmpi.so.12"},
                                    {"impi-abi", MpiAbi::standard, "libmpi_abi.so.1"}};
  std::vector<MpiInstallation> found;
  std::error_code failed;
  const LibrarySearch search = library_search("");
  for (const Place& place : system_places) {
    const fs::path mpirun = std::string("/usr/bin/mpirun.") + place.name;
    const auto cached = search.cache.find(place.soname);
    if (!fs::exists(mpirun, failed) || cached == search.cache.end()) continue;
    found.push_back({place.name, place.abi, launch_words(mpirun, place.abi), cached->second.front(), ""});
  }
  for (const Place& place : wheel_places) {
    const std::string name = place.name;
    const fs::path prefix = wheels_home() / name.substr(0, name.find('-'));
    const fs::path mpirun = prefix / "bin" / "mpirun";
    const fs::path library = prefix / "lib" / place.soname;
    if (!fs::exists(mpirun, failed) || !fs::exists(library, failed)) continue;
    found.push_back({name, place.abi, launch_words(mpirun, place.abi), library, library.parent_path()});
  }
  return found;
}

std::string version_of(const MpiInstallation& installation) {
  const std::string text = ask_version(installation.mpirun.front());
  std::smatch number;
  return std::regex_search(text, number, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? number.str() : "unknown";
}

}  // namespace farsum::cli
