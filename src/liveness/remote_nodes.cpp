#include "liveness/remote_nodes.hpp"

#include <algorithm>
#include <cstring>

namespace farsum {

bool RemoteNodes::add(const NetworkCard& card) {
  const std::lock_guard lock(mutex_);
  if (here_.is_here(card.rank) || node_of_.contains(card.rank)) return false;
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const Node& node) { return node.identity.is_same_node(card.node); });
  const auto at = static_cast<std::size_t>(found - nodes_.begin());
  if (found == nodes_.end()) {
    nodes_.push_back({card.node, card.rank, card.machine, {}});
    for (const std::uint32_t host : card.hosts) {
      if (host != 0) nodes_.back().hosts.push_back(host);
    }
  }
  node_of_.emplace(card.rank, at);
  return true;
}

bool RemoteNodes::reaches(Rank rank) const {
  if (here_.is_here(rank)) return true;
  const std::lock_guard lock(mutex_);
  return node_of_.contains(rank);
}

std::string RemoteNodes::host_of(Rank rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = node_of_.find(rank);
  if (found == node_of_.end()) return "?";
  const auto& host = nodes_[found->second].identity.host;
  return {host.data(), strnlen(host.data(), host.size())};
}

bool RemoteNodes::share_node(Rank one, Rank other) const {
  const std::lock_guard lock(mutex_);
  return node_of_.at(one) == node_of_.at(other);
}

std::uint32_t RemoteNodes::machine_of(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return nodes_[node_of_.at(rank)].machine;
}

std::vector<std::uint32_t> RemoteNodes::machines() const {
  std::vector<std::uint32_t> machines;
  {
    const std::lock_guard lock(mutex_);
    for (const Node& node : nodes_) machines.push_back(node.machine);
  }
  std::sort(machines.begin(), machines.end());
  machines.erase(std::unique(machines.begin(), machines.end()), machines.end());
  return machines;
}

GroupPlaces RemoteNodes::places_of(std::span<const Rank> ranks) const {
  GroupPlaces places;
  const std::lock_guard lock(mutex_);
  std::map<std::size_t, std::size_t> listed;  // node here to its place in `remote`
  for (std::uint32_t member = 0; member < ranks.size(); ++member) {
    if (here_.is_here(ranks[member])) {
      places.here.push_back(member);
      continue;
    }
    const auto [entry, is_new] = listed.try_emplace(node_of_.at(ranks[member]), places.remote.size());
    if (is_new) places.remote.push_back({ranks[member], {}});
    places.remote[entry->second].members.push_back(member);
  }
  return places;
}

std::vector<Rank> RemoteNodes::one_of_each_node() const {
  const std::lock_guard lock(mutex_);
  std::vector<Rank> ranks;
  for (const Node& node : nodes_) ranks.push_back(node.first);
  return ranks;
}

std::vector<std::uint32_t> RemoteNodes::hosts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> all;
  for (const Node& node : nodes_) all.insert(all.end(), node.hosts.begin(), node.hosts.end());
  return all;
}

void RemoteNodes::lose(Rank rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  lost_.try_emplace(rank, why);
}

std::optional<std::string> RemoteNodes::why_lost(Rank rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find(rank);
  return found == lost_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace farsum
