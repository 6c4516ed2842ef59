// The list of places; tools/mpi_libraries --list knows those of the machine, too.
#include "cli/mpi/mpi_installations.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

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

// What is in the folder, as far as it can be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; entry != end; entry.increment(failed)) {
    entries.push_back(entry->path());
  }
  return entries;
}

// What the modules of an mpi4py that was built here are linked to. Those of its wheels are several, of which one is
// chosen when it is loaded, and no MPI that they need is beside them.
std::vector<MpiInstallation> find_mpi_of_mpi4py(const fs::path& lib) {
  std::vector<MpiInstallation> found;
  std::set<fs::path> modules;
  std::error_code failed;
  for (const fs::path& python : entries_of(lib)) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const fs::path& file : entries_of(python / "site-packages" / "mpi4py")) {
      const std::string name = file.filename();
      // In conda's environments python3.1 is a link to the folder of the version that is there.
      if (name.starts_with("MPI.") && name.ends_with(".so")) modules.insert(fs::weakly_canonical(file, failed));
    }
  }
  if (modules.size() != 1) return found;
  const fs::path& module = *modules.begin();
  const auto elf = read_elf(module);
  if (!elf) return found;
  const char* const library_path = std::getenv("LD_LIBRARY_PATH");
  const LibrarySearch search = library_search(library_path == nullptr ? "" : library_path);
  for (const MpiNeed& need : follow_linkage(module, *elf, search).mpi) {
    const auto abi = need.is_old_openmpi ? std::nullopt : mpi_abi_of_library(need.soname);
    if (abi && !need.file.empty()) found.push_back({"mpi4py", *abi, {}, need.file, "", ""});
  }
  return found;
}

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
    found.push_back({place.name, place.abi, launch_words(mpirun, place.abi), cached->second.front(), "", ""});
  }
  for (const Place& place : wheel_places) {
    const std::string name = place.name;
    const fs::path prefix = wheels_home() / name.substr(0, name.find('-'));
    const fs::path mpirun = prefix / "bin" / "mpirun";
    const fs::path library = prefix / "lib" / place.soname;
    if (!fs::exists(mpirun, failed) || !fs::exists(library, failed)) continue;
    found.push_back({name, place.abi, launch_words(mpirun, place.abi), library, library.parent_path(), ""});
  }
  return found;
}

std::vector<std::string> python_environments(const std::string& own_prefix) {
  std::vector<std::string> found;
  std::error_code failed;
  const auto add = [&](const fs::path& folder) {
    const fs::path whole = fs::weakly_canonical(folder, failed);
    if (whole.empty() || !fs::is_directory(whole, failed)) return;
    if (std::find(found.begin(), found.end(), whole.string()) == found.end()) found.push_back(whole);
  };
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* folder = std::getenv(name); folder != nullptr && *folder != '\0') add(folder);
  }
  const fs::path own = own_prefix;
  if (fs::exists(own / "pyvenv.cfg", failed) || fs::exists(own / "conda-meta", failed)) add(own);
  return found;
}

std::vector<MpiInstallation> find_mpi_of_environment(const std::string& folder) {
  std::vector<MpiInstallation> found;
  std::error_code failed;
  const fs::path lib = fs::path(folder) / "lib";
  std::vector<std::string> mpirun;
  for (const char* name : {"mpirun", "mpiexec", "mpiexec.hydra"}) {
    const fs::path launcher = fs::path(folder) / "bin" / name;
    if (mpirun.empty() && access(launcher.c_str(), X_OK) == 0) mpirun = {launcher};
  }
  const std::string version = mpirun.empty() ? "" : ask_version(mpirun.front());
  const bool is_intel = classify_launcher(version) == LauncherKind::intel;
  for (const Place& place : {Place{is_intel ? "impi" : "mpich", MpiAbi::mpich, "libmpi.so.12"},
                             Place{"openmpi", MpiAbi::openmpi, "libmpi.so.40"},
                             Place{is_intel ? "impi-abi" : "mpich-abi", MpiAbi::standard, "libmpi_abi.so.1"}}) {
    const fs::path library = lib / place.soname;
    if (fs::exists(library, failed)) found.push_back({place.name, place.abi, mpirun, library, lib, version});
  }
  for (const MpiInstallation& built : find_mpi_of_mpi4py(lib)) {
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const MpiInstallation& one) {
      return fs::equivalent(one.library, built.library, failed);
    });
    if (!is_known) found.push_back(built);
  }
  return found;
}

std::string version_of(const MpiInstallation& installation) {
  if (installation.mpirun.empty()) return "unknown";
  const std::string& told = installation.version_text;
  const std::string text = told.empty() ? ask_version(installation.mpirun.front()) : told;
  std::smatch number;
  return std::regex_search(text, number, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? number.str() : "unknown";
}

}  // namespace farsum::cli
