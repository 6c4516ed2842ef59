#include "os/usable_processors.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "os/cgroups.h"

namespace farsum::os {
namespace {

std::string as_prefix(const std::filesystem::path& root) { return root == "/" ? std::string() : root.string(); }

// None where the machine has more processors than a set holds.
ProcessorSet own_affinity() {
  cpu_set_t set;
  static_assert(sizeof set * 8 == most_processors);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? processor_set_of(set) : ProcessorSet();
}

// A group has one folder, wherever in a container it is mounted.
std::uint64_t identity_of(const char* folder) {
  struct stat status {};
  if (stat(folder, &status) != 0) return 0;
  return status.st_ino ^ (static_cast<std::uint64_t>(status.st_dev) << 40);
}

std::uint32_t size_of(const ProcessorSet& set) { return static_cast<std::uint32_t>(set.count()); }

bool is_within(const ProcessorSet& inner, const ProcessorSet& outer) { return (inner & ~outer).none(); }

// More ranks on a processor.
bool is_scarcer(const ProcessorShare& one, const ProcessorShare& other) {
  if (other.bound == ProcessorBound::none) return true;
  return std::uint64_t{one.ranks} * other.processors > std::uint64_t{other.ranks} * one.processors;
}

void offer(ProcessorShare& scarcest, const ProcessorShare& share) {
  if (share.processors != 0 && is_scarcer(share, scarcest)) scarcest = share;
}

ProcessorShare share_within(std::span<const ProcessorBounds> ranks, const ProcessorSet& set) {
  const auto shares = [&](const ProcessorBounds& rank) { return rank.affinity.any() && is_within(rank.affinity, set); };
  return {static_cast<std::uint32_t>(std::count_if(ranks.begin(), ranks.end(), shares)), size_of(set),
          ProcessorBound::affinity};
}

ProcessorShare share_of_quota(std::span<const ProcessorBounds> ranks, const ProcessorBounds& one) {
  const auto shares = [&](const ProcessorBounds& rank) {
    return rank.quota != 0 && rank.quota_group == one.quota_group;
  };
  return {static_cast<std::uint32_t>(std::count_if(ranks.begin(), ranks.end(), shares)), one.quota,
          ProcessorBound::quota};
}

// Each such agent as one rank more.
std::vector<ProcessorBounds> with_spinning_agents(std::span<const ProcessorBounds> ranks) {
  std::vector<ProcessorBounds> all(ranks.begin(), ranks.end());
  for (ProcessorBounds agent : ranks) {
    agent.affinity = agent.spinning_agent;
    if (agent.affinity.any()) all.push_back(agent);
  }
  return all;
}

}  // namespace

ProcessorSet processor_set_of(const cpu_set_t& set) {
  ProcessorSet processors;
  for (std::size_t number = 0; number < most_processors; ++number) {
    if (CPU_ISSET(number, &set)) processors.set(number);
  }
  return processors;
}

ProcessorBounds read_processor_bounds(const std::filesystem::path& root) {
  ProcessorBounds bounds;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) bounds.online = static_cast<std::uint32_t>(online);
  bounds.affinity = own_affinity();
  farsum_cgroup_bound quota;
  farsum_cgroup_read_quota(as_prefix(root).c_str(), &quota);
  bounds.quota = quota.processors;
  if (quota.processors != 0) bounds.quota_group = identity_of(quota.folder);
  return bounds;
}

std::string_view name_of(ProcessorBound bound) {
  switch (bound) {
    case ProcessorBound::none:
      return "nothing known";
    case ProcessorBound::online:
      return "the processors online";
    case ProcessorBound::affinity:
      return "the processors that ranks are bound to";
    case ProcessorBound::quota:
      return "a cgroup's quota";
  }
  return {};
}

ProcessorShare scarcest_share(std::span<const ProcessorBounds> of_ranks) {
  const std::vector<ProcessorBounds> ranks = with_spinning_agents(of_ranks);
  ProcessorShare scarcest;
  ProcessorSet all;
  for (const ProcessorBounds& rank : ranks) {
    offer(scarcest, {static_cast<std::uint32_t>(ranks.size()), rank.online, ProcessorBound::online});
    all |= rank.affinity;
  }
  if (all.any()) offer(scarcest, share_within(ranks, all));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const ProcessorBounds& rank = ranks[i];
    // Launchers give neighbours the same.
    const bool is_as_before = i != 0 && rank.affinity == ranks[i - 1].affinity && rank.quota == ranks[i - 1].quota &&
                              rank.quota_group == ranks[i - 1].quota_group;
    if (is_as_before) continue;
    offer(scarcest, share_within(ranks, rank.affinity));
    if (rank.quota != 0) offer(scarcest, share_of_quota(ranks, rank));
  }
  return scarcest;
}

ProcessorReport report_processors(const std::filesystem::path& root) {
  const std::string prefix = as_prefix(root);
  const ProcessorBounds own = read_processor_bounds(root);
  farsum_cgroup_bound quota;
  farsum_cgroup_bound set;
  farsum_cgroup_read_quota(prefix.c_str(), &quota);
  farsum_cgroup_read_set(prefix.c_str(), &set);
  ProcessorReport report{own.online, size_of(own.affinity), set.processors, quota.processors, 0, {}};
  const auto bound = [&](std::uint32_t processors, const std::string& by) {
    if (processors == 0 || (report.usable != 0 && report.usable <= processors)) return;
    report.usable = processors;
    report.decided_by = by;
  };
  bound(report.online, "all that are online");
  bound(report.cgroup_set, fmt::format("the processors of the cgroup {}", set.folder));
  bound(report.cgroup_quota, fmt::format("the quota of the cgroup {}", quota.folder));
  bound(report.affinity, "the affinity of this process");
  return report;
}

}  // namespace farsum::os
