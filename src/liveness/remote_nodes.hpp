// What a rank knows of the ranks on other nodes: which share one, what its host is called, how one was lost.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/group_places.hpp"
#include "base/node_ranks.hpp"
#include "base/units.hpp"
#include "liveness/network_card.hpp"

namespace farsum {

// Any thread may call. What is known of a rank never changes, but that it is lost.
class RemoteNodes {
 public:
  explicit RemoteNodes(const NodeRanks& here) : here_(here) {}

  // False where it was known before, or is on this node.
  bool add(const NetworkCard& card);
  // Whether the rank is on this node or was added.
  bool reaches(Rank rank) const;
  std::string host_of(Rank rank) const;
  // Whether two ranks that were added share a node.
  bool share_node(Rank one, Rank other) const;
  // Of which kind the machine is of a rank that was added, as its card says.
  std::uint32_t machine_of(Rank rank) const;
  // The kinds of the machines of all that were added, each once.
  std::vector<std::uint32_t> machines() const;
  // Where the members of a group are, all of which are reached.
  GroupPlaces places_of(std::span<const Rank> ranks) const;
  // One rank of each other node that is known: the first that was added.
  std::vector<Rank> one_of_each_node() const;
  // IPv4 addresses of all nodes that were added.
  std::vector<std::uint32_t> hosts() const;

  // The first reason counts.
  void lose(Rank rank, const std::string& why);
  bool is_lost(Rank rank) const { return why_lost(rank).has_value(); }
  std::optional<std::string> why_lost(Rank rank) const;

 private:
  struct Node {
    NodeIdentity identity;
    Rank first;
    std::uint32_t machine;
    std::vector<std::uint32_t> hosts;
  };

  const NodeRanks& here_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Node> nodes_;
  std::map<Rank, std::size_t> node_of_;
  std::map<Rank, std::string> lost_;
};

}  // namespace farsum
