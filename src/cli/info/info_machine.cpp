// Collects the sections of info_machine.hpp from the compiler, /sys and /proc.
#include "cli/info/info_machine.hpp"

#include <farsum.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "cli/info/info_probe.hpp"
#include "cli/processors.hpp"
#include "ops/kernels.hpp"
#include "os/memory_room.hpp"
#include "os/usable_processors.hpp"
#include "runtime/pmix.hpp"
#include "runtime/wireup.hpp"

namespace farsum::cli {

namespace {

std::string human_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

// Clang's version begins with its name.
std::string compiler() {
#if defined(__clang__)
  return __VERSION__;
#else
  return fmt::format("g++ {}", __VERSION__);
#endif
}

std::string build_type() {
#if defined(__SANITIZE_ADDRESS__)
  return "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
  return "thread sanitizer";
#elif defined(NDEBUG) && defined(__OPTIMIZE__)
  return "release";
#else
  return "debug";
#endif
}

std::vector<std::string> runnable_kernels() {
  std::vector<std::string> names;
  for (const ops::Isa isa : ops::available_isas()) names.emplace_back(ops::kernels(isa).name);
  return names;
}

// The first line of a file under /proc or /sys; empty when it cannot be read.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A line of /proc/meminfo, in bytes.
std::uint64_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

Report limit_of(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return limit.rlim_cur;
}

// What x86 calls a processor; other kinds of machine have no such line.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

void add_cache(Report& report, const Processors& processors, const char* name, int level) {
  const auto cache = processors.caches.find(level);
  if (cache == processors.caches.end()) return;
  report[name] = fmt::format("{} x {}", cache->second.count, human_bytes(cache->second.bytes));
}

void add_processor(Report& report) {
  const Processors processors = read_processors();
  const std::string model = processor_model();
  if (!model.empty()) report["processor"] = model;
  std::size_t units = 0;
  for (const CpuList& core : processors.cores) units += core.size();
  report["packages"] = processors.packages;
  report["cores"] = processors.cores.size();
  report["processing_units"] = units;
  report["numa_nodes"] = processors.numa_nodes;
  add_cache(report, processors, "l1_data_cache", 1);
  add_cache(report, processors, "l2_cache", 2);
  add_cache(report, processors, "l3_cache", 3);
}

// A job of more ranks here is crowded. Ranks that a launcher binds have the processors of all of them.
void add_usable_processors(Report& report) {
  const auto or_all = [](std::uint32_t processors) { return processors == 0 ? Report("all") : Report(processors); };
  const os::ProcessorReport processors = os::report_processors();
  report["processors_online"] = processors.online;
  report["processors_by_affinity"] = or_all(processors.affinity);
  report["processors_by_cgroup_set"] = or_all(processors.cgroup_set);
  report["processors_by_cgroup_quota"] = or_all(processors.cgroup_quota);
  report["processors_usable"] = processors.usable;
  report["processors_usable_by"] = processors.decided_by;
}

std::string yama_sentence(int scope) {
  switch (scope) {
    case -1:
      return "not in this kernel";
    case 0:
      return "0: no restriction";
    case 1:
      return "1: the owner must allow it (Farsum does)";
    case 2:
      return "2: only with CAP_SYS_PTRACE";
    default:
      return fmt::format("{}: never", scope);
  }
}

std::string attach_sentence(const AttachProbe& probe) {
  if (probe.allowed) return "works between ranks";
  if (probe.allowed_on_ask) return "works between ranks once the owner has allowed it (Farsum does)";
  return fmt::format("refused: {}", probe.refusal);
}

// How farsum_init would take its place in a program that stood where this one does.
std::string describe_wire_up(const Settings& settings) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto text = [&](const char* name) { return variable(name) == nullptr ? "?" : variable(name); };
  switch (choose_wire_up(variable, settings)) {
    case WireUp::launcher:
      return fmt::format("farsum run: rank {} of {}", text("FARSUM_RANK"), text("FARSUM_SIZE"));
    case WireUp::pmix:
      return fmt::format("PMIx: rank {} of job {}", text("PMIX_RANK"), text("PMIX_NAMESPACE"));
    case WireUp::alone:
      break;
  }
  return "none: a rank alone";
}

}  // namespace

Report describe_build(const Settings& settings) {
  Report report;
  report["version"] = fmt::format("{}.{}", FARSUM_VERSION_MAJOR, FARSUM_VERSION_MINOR);
  report["compiler"] = compiler();
  report["build_type"] = build_type();
  report["kernels_runnable_here"] = runnable_kernels();
  report["kernels_used_here"] =
      settings.isa.empty() ? std::string(ops::kernels_for_this_machine().name) : settings.isa + " (FARSUM_ISA is set)";
  report["wire-up"] = describe_wire_up(settings);
  report["pmix"] = describe_pmix(settings);
  return report;
}

Report describe_machine() {
  Report report;
  utsname system{};
  uname(&system);
  report["host"] = system.nodename;
  report["kernel"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  add_processor(report);
  std::vector<int> allowed;
  for (const CpuList& core : allowed_cores()) allowed.insert(allowed.end(), core.begin(), core.end());
  report["processing_units_allowed"] = allowed;
  add_usable_processors(report);
  report["page_bytes"] = sysconf(_SC_PAGESIZE);
  report["memory_bytes"] = meminfo("MemTotal");
  report["memory_available_bytes"] = meminfo("MemAvailable");
  report["commit_limit_bytes"] = meminfo("CommitLimit");
  const os::MemoryRoom room = os::available();
  report["room_for_windows_bytes"] = room.bytes;
  report["room_is_bound_by"] = os::name_of(room.bound);
  report["overcommit_mode"] = first_line("/proc/sys/vm/overcommit_memory");
  report["transparent_huge_pages"] = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  report["transparent_huge_pages_shared"] = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return report;
}

Report describe_permissions() {
  Report report;
  const std::string memory_file = probe_memory_file();
  report["memory_files"] = memory_file.empty() ? "work" : "refused: " + memory_file;
  report["cross_memory_attach"] = attach_sentence(probe_attach());
  report["yama_ptrace_scope"] = yama_sentence(yama_scope());
  report["locked_memory_limit_bytes"] = limit_of(RLIMIT_MEMLOCK);
  report["address_space_limit_bytes"] = limit_of(RLIMIT_AS);
  report["open_files_limit"] = limit_of(RLIMIT_NOFILE);
  report["processes_limit"] = limit_of(RLIMIT_NPROC);
  report["maps_limit"] = first_line("/proc/sys/vm/max_map_count");
  return report;
}

}  // namespace farsum::cli
