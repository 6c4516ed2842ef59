// The processing units of this machine and what they share, as the kernel tells it in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "cli/run/run_spec.hpp"

namespace farsum::cli {

struct Cache {
  int count = 0;
  std::uint64_t bytes = 0;  // of the first of them
};

struct Processors {
  std::vector<CpuList> cores;  // the processing units of each; the cores of a package are neighbours
  int packages = 0;
  int numa_nodes = 1;
  std::map<int, Cache> caches;  // by level, those of instructions left out
};

// All that are online; `root` is "/" but in tests. No core where the kernel tells nothing.
[[nodiscard]] Processors read_processors(const std::filesystem::path& root = "/");

// Of each core what is among `units`, without the cores that have none of them. Units of which no core is known are a
// core each.
[[nodiscard]] std::vector<CpuList> cores_within(std::vector<CpuList> cores, const CpuList& units);

// The processing units that this process may use, each core's in one list.
[[nodiscard]] std::vector<CpuList> allowed_cores();

}  // namespace farsum::cli
