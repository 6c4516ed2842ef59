// Lists of processing units, and the machine's cores by hwloc.
#include "cli/run/run_binding.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>
#include <unordered_set>

namespace farsum::cli {

namespace {

constexpr int highest_cpu = 65535;

bool parse_number(const char*& at, const char* end, int& number) {
  const auto [rest, error] = std::from_chars(at, end, number);
  if (error != std::errc{} || number < 0 || number > highest_cpu) return false;
  at = rest;
  return true;
}

// One item of the list: N or N-M.
bool parse_range(const std::string& item, CpuList& cpus) {
  const char* at = item.data();
  const char* const end = at + item.size();
  int first = 0;
  if (!parse_number(at, end, first)) return false;
  int last = first;
  if (at != end && (*at++ != '-' || !parse_number(at, end, last))) return false;
  if (at != end || last < first) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

CpuList units_of(hwloc_const_cpuset_t set) {
  CpuList units;
  for (int unit = hwloc_bitmap_first(set); unit >= 0; unit = hwloc_bitmap_next(set, unit)) units.push_back(unit);
  return units;
}

using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;
using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t loaded = nullptr;
  if (hwloc_topology_init(&loaded) != 0) return {nullptr, hwloc_topology_destroy};
  Topology topology(loaded, hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(loaded, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(loaded) != 0) topology.reset();
  return topology;
}

std::string not_allowed(const CpuList& cpus, const std::vector<CpuList>& cores) {
  std::unordered_set<int> allowed;
  for (const CpuList& core : cores) allowed.insert(core.begin(), core.end());
  for (const int cpu : cpus) {
    if (!allowed.contains(cpu)) {
      return fmt::format(
          "--bind: processing unit {} does not exist or is not allowed here (farsum info lists those that are)", cpu);
    }
  }
  return {};
}

}  // namespace

ParsedCpus parse_cpu_list(const std::string& text) {
  ParsedCpus parsed;
  std::istringstream items(text);
  bool good = !text.empty() && text.back() != ',';
  for (std::string item; good && std::getline(items, item, ',');) good = parse_range(item, parsed.cpus);
  if (good) return parsed;
  return {{}, fmt::format("--bind takes none, core or a list such as 0,1 or 0-3,6, not '{}'", text)};
}

std::vector<CpuList> allowed_cores() {
  const Topology topology = load_topology();
  if (!topology) return {};
  const Bitmap allowed(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(allowed.get(), hwloc_topology_get_allowed_cpuset(topology.get()));
  }
  const hwloc_obj_type_t kind =
      hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<CpuList> cores;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology.get(), kind, core)) != nullptr;) {
    const Bitmap usable(hwloc_bitmap_dup(core->cpuset), hwloc_bitmap_free);
    hwloc_bitmap_and(usable.get(), usable.get(), allowed.get());
    if (hwloc_bitmap_iszero(usable.get()) == 0) cores.push_back(units_of(usable.get()));
  }
  return cores;
}

Bindings choose_bindings(const std::string& request, int ranks, const std::vector<CpuList>& cores) {
  if (request == "none") return {};
  if (request == "core") return {static_cast<std::size_t>(ranks) > cores.size() ? std::vector<CpuList>{} : cores, {}};
  const ParsedCpus parsed = parse_cpu_list(request);
  if (!parsed.sentence.empty()) return {{}, parsed.sentence};
  Bindings bindings;
  for (const int cpu : parsed.cpus) bindings.of_ranks.push_back({cpu});
  bindings.sentence = not_allowed(parsed.cpus, cores);
  return bindings;
}

}  // namespace farsum::cli
