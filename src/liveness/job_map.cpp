#include "liveness/job_map.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace farsum {
namespace {

template <std::size_t size>
void copy_text(std::array<char, size>& to, const std::string& text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), size - 1));
}

template <std::size_t size>
std::string text_in(const std::array<char, size>& text) {
  return {text.data(), strnlen(text.data(), size)};
}

// 0 where the kernel has no such namespace: then all processes share it.
std::uint64_t inode_of(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

bool NodeIdentity::is_same_node(const NodeIdentity& other) const {
  return boot == other.boot && network_namespace == other.network_namespace &&
         process_namespace == other.process_namespace && user_namespace == other.user_namespace && name == other.name;
}

NodeIdentity identify_node(const std::string& node_name) {
  NodeIdentity identity;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  copy_text(identity.boot, boot);
  identity.network_namespace = inode_of("/proc/self/ns/net");
  identity.process_namespace = inode_of("/proc/self/ns/pid");
  identity.user_namespace = inode_of("/proc/self/ns/user");
  copy_text(identity.name, node_name);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) copy_text(host, "?");
  copy_text(identity.host, node_name.empty() ? text_in(host) : node_name);
  return identity;
}

JobMap::JobMap(std::span<const NodeIdentity> identities) {
  std::vector<Rank> first_ranks;  // of each node
  for (Rank rank = 0; rank < identities.size(); ++rank) {
    const auto found = std::find_if(first_ranks.begin(), first_ranks.end(),
                                    [&](Rank first) { return identities[first].is_same_node(identities[rank]); });
    const auto node = static_cast<std::uint32_t>(found - first_ranks.begin());
    if (found == first_ranks.end()) {
      first_ranks.push_back(rank);
      nodes_.push_back({text_in(identities[rank].host), {}});
    }
    node_of_.push_back(node);
    local_rank_of_.push_back(static_cast<std::uint32_t>(nodes_[node].ranks.size()));
    nodes_[node].ranks.push_back(rank);
  }
}

JobMap JobMap::of_one_node(std::uint32_t ranks, const NodeIdentity& identity) {
  return JobMap(std::vector<NodeIdentity>(ranks, identity));
}

std::string text_of_ranks(std::span<const Rank> ranks) {
  constexpr std::size_t most_pieces = 8;
  std::vector<std::string> pieces;
  for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    if (pieces.size() == most_pieces) {
      pieces.push_back(fmt::format("{} more", ranks.size() - begin));
      break;
    }
    end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    pieces.push_back(end == begin + 1 ? fmt::format("{}", ranks[begin])
                                      : fmt::format("{}-{}", ranks[begin], ranks[end - 1]));
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(pieces, ", "));
}

std::string JobMap::text() const {
  constexpr std::size_t most_hosts = 8;
  std::vector<std::string> hosts;
  for (std::size_t node = 0; node < std::min(nodes_.size(), most_hosts); ++node)
    hosts.push_back(fmt::format("{} on {}", text_of_ranks(nodes_[node].ranks), nodes_[node].host));
  if (nodes_.size() > most_hosts) hosts.push_back(fmt::format("others on {} more", nodes_.size() - most_hosts));
  return fmt::format("{}", fmt::join(hosts, "; "));
}

}  // namespace farsum
