#include "counters.hpp"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "context.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

std::uint64_t sum(const std::uint64_t (&values)[6]) { return std::accumulate(values, values + 6, std::uint64_t{0}); }

std::string first_word(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// The two lines of .../status that count context switches, added.
std::uint64_t context_switches(const fs::path& status) {
  std::ifstream lines(status);
  std::uint64_t switches = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("ctxt_switches:") != std::string::npos) switches += std::stoull(line.substr(line.find(':') + 1));
  }
  return switches;
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  messages += other.messages;
  bytes += other.bytes;
  locks += other.locks;
  wakeups += other.wakeups;
  doorbells += other.doorbells;
  context_switches += other.context_switches;
  return *this;
}

Counters read_counters() {
  farsum_statistics statistics{};
  statistics.struct_bytes = sizeof statistics;
  require(farsum_statistics_read(&statistics));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.messages = statistics.messages_sent,
          .bytes = sum(statistics.bytes),
          .locks = statistics.stripe_contention,
          .wakeups = statistics.agent_wakeups,
          .doorbells = statistics.doorbells_rung,
          .context_switches = static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

Counters operator-(Counters later, const Counters& earlier) {
  later.messages -= earlier.messages;
  later.bytes -= earlier.bytes;
  later.locks -= earlier.locks;
  later.wakeups -= earlier.wakeups;
  later.doorbells -= earlier.doorbells;
  later.context_switches -= earlier.context_switches;
  return later;
}

nlohmann::ordered_json per_operation(const Counters& counters, std::uint64_t operations) {
  const double count = operations == 0 ? 1.0 : static_cast<double>(operations);
  const auto each = [count](std::uint64_t total) { return static_cast<double>(total) / count; };
  return {{"operations", operations},
          {"messages", each(counters.messages)},
          {"bytes", each(counters.bytes)},
          {"locks", each(counters.locks)},
          {"wakeups", each(counters.wakeups)},
          {"doorbells", each(counters.doorbells)},
          {"context_switches", each(counters.context_switches)}};
}

AgentThread read_agent_thread() {
  for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task")) {
    if (first_word(task.path() / "comm") != "farsum-agent") continue;
    const std::string run_ns = first_word(task.path() / "schedstat");
    return {.processor_ns = run_ns.empty() ? 0 : std::stoull(run_ns),
            .context_switches = context_switches(task.path() / "status")};
  }
  return {};
}

}  // namespace bench
