// Which processors a process may use, and whether the ranks of a node have one each. Reading is apart from judging, so
// that each can be tested alone.
#pragma once

#include <sched.h>

#include <bitset>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace farsum::os {

inline constexpr std::size_t most_processors = 1024;
using ProcessorSet = std::bitset<most_processors>;
[[nodiscard]] ProcessorSet processor_set_of(const cpu_set_t& set);

// What bounds the processors of one process. Ranks leave theirs to others in shared memory.
struct ProcessorBounds {
  std::uint32_t online = 0;  // 0: unknown
  std::uint32_t quota = 0;   // the least that its cgroup and those above it leave it of time, in processors; 0: all
  std::uint64_t quota_group = 0;  // tells apart the groups that set it
  ProcessorSet affinity;          // of the calling thread; cgroups' sets are in it; none: unknown
  ProcessorSet spinning_agent;  // where the rank's agent spins, which takes a processor as a rank does; none: it sleeps
};

// `root` is "/" but in tests; the affinity is always the caller's.
[[nodiscard]] ProcessorBounds read_processor_bounds(const std::filesystem::path& root = "/");

enum class ProcessorBound : std::uint8_t { none, online, affinity, quota };
[[nodiscard]] std::string_view name_of(ProcessorBound bound);

// Ranks, and agents that spin, that have these processors and no others.
struct ProcessorShare {
  std::uint32_t ranks = 0;  // and agents
  std::uint32_t processors = 0;
  ProcessorBound bound = ProcessorBound::none;
  bool is_crowded() const { return bound != ProcessorBound::none && ranks > processors; }
};

// The scarcest share of the ranks of a node: of all those that are online, or by affinity, of what ranks bound within
// one and the same set have, or of a cgroup's quota what its ranks have. Crowded: some rank waits for a processor that
// another one is on.
[[nodiscard]] ProcessorShare scarcest_share(std::span<const ProcessorBounds> ranks);

// What this process alone has, for reports. 0: not bounded so.
struct ProcessorReport {
  std::uint32_t online = 0;
  std::uint32_t affinity = 0;
  std::uint32_t cgroup_set = 0;
  std::uint32_t cgroup_quota = 0;
  std::uint32_t usable = 0;
  std::string decided_by;
};
[[nodiscard]] ProcessorReport report_processors(const std::filesystem::path& root = "/");

}  // namespace farsum::os
