// Reads /sys/devices/system/cpu and node.
#include "cli/processors.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/run/run_binding.hpp"

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;

// Empty when it is not there.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The kernel writes lists as --bind takes them.
CpuList list_in(const fs::path& path) { return parse_cpu_list(first_line(path)).cpus; }

// 48K, as sizes of caches are written.
std::uint64_t bytes_in(const fs::path& path) {
  const std::string text = first_line(path);
  std::uint64_t size = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{}) return 0;
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  return size * (unit == "K" ? 1024 : unit == "M" ? 1024 * 1024 : 1);
}

// Kernels before 5.3 know the list by its second name alone.
CpuList core_of(int unit, const fs::path& topology) {
  CpuList core = list_in(topology / "core_cpus_list");
  if (core.empty()) core = list_in(topology / "thread_siblings_list");
  return core.empty() ? CpuList{unit} : core;
}

class Reading {
 public:
  void add(int unit, const fs::path& folder) {
    const CpuList core = core_of(unit, folder / "topology");
    // The first of a core's units may be none of those that this machine says it has.
    if (seen_cores_.insert(core.front()).second)
      cores_of(first_line(folder / "topology" / "physical_package_id")).push_back(core);
    for (int index = 0;; ++index) {
      const fs::path cache = folder / "cache" / fmt::format("index{}", index);
      if (first_line(cache / "level").empty()) return;
      add_cache(cache);
    }
  }

  Processors finished() {
    found_.packages = static_cast<int>(packages_.size());
    for (auto& [name, cores] : packages_) std::move(cores.begin(), cores.end(), std::back_inserter(found_.cores));
    return std::move(found_);
  }

 private:
  // Packages come in the order of their first units.
  std::vector<CpuList>& cores_of(const std::string& package) {
    const auto is_it = [&](const auto& known) { return known.first == package; };
    const auto known = std::find_if(packages_.begin(), packages_.end(), is_it);
    return known != packages_.end() ? known->second : packages_.emplace_back(package, std::vector<CpuList>{}).second;
  }

  // Each unit that shares a cache names it.
  void add_cache(const fs::path& folder) {
    const std::string level = first_line(folder / "level");
    if (first_line(folder / "type") == "Instruction") return;
    if (!seen_caches_.emplace(level, first_line(folder / "shared_cpu_list")).second) return;
    Cache& cache = found_.caches[std::atoi(level.c_str())];
    if (cache.count++ == 0) cache.bytes = bytes_in(folder / "size");
  }

  Processors found_;
  std::vector<std::pair<std::string, std::vector<CpuList>>> packages_;
  std::set<int> seen_cores_;  // their first units
  std::set<std::pair<std::string, std::string>> seen_caches_;
};

// The kernel refuses a set that is shorter than its own.
CpuList units_of_this_process() {
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> affinity(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, affinity.data()) != 0) continue;
    CpuList units;
    for (std::size_t unit = 0; unit < bytes * 8; ++unit) {
      if (CPU_ISSET_S(unit, bytes, affinity.data())) units.push_back(static_cast<int>(unit));
    }
    return units;
  }
  return {};
}

}  // namespace

Processors read_processors(const fs::path& root) {
  const fs::path system = root / "sys/devices/system";
  Reading reading;
  for (const int unit : list_in(system / "cpu/online")) reading.add(unit, system / "cpu" / fmt::format("cpu{}", unit));
  Processors found = reading.finished();
  const CpuList nodes = list_in(system / "node/online");
  if (!nodes.empty()) found.numa_nodes = static_cast<int>(nodes.size());
  return found;
}

std::vector<CpuList> cores_within(std::vector<CpuList> cores, const CpuList& units) {
  std::set<int> left(units.begin(), units.end());
  for (CpuList& core : cores) {
    CpuList kept;
    for (const int unit : core) {
      if (left.erase(unit) != 0) kept.push_back(unit);
    }
    core = std::move(kept);
  }
  std::erase_if(cores, [](const CpuList& core) { return core.empty(); });
  for (const int unit : left) cores.push_back({unit});
  return cores;
}

std::vector<CpuList> allowed_cores() { return cores_within(read_processors().cores, units_of_this_process()); }

}  // namespace farsum::cli
