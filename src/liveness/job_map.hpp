// Which ranks of a job share a node, and what the nodes are called. A node here is what one kernel, one network
// namespace, one process namespace and one user namespace hold together: only inside it do shared memory, the lives of
// peers and copies between processes work.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace farsum {

// A node's identity as it travels between ranks: equal for all ranks of a node, and for these only.
struct NodeIdentity {
  std::array<char, 40> boot{};  // of the kernel
  std::uint64_t network_namespace = 0;
  std::uint64_t process_namespace = 0;
  std::uint64_t user_namespace = 0;
  std::array<char, 64> name{};  // FARSUM_NODE_NAME
  std::array<char, 64> host{};  // what people call it

  // The host's name is for people: two names do not make two nodes.
  bool is_same_node(const NodeIdentity& other) const;
};

NodeIdentity identify_node(const std::string& node_name);

// Nodes are numbered from 0 in the order of their lowest ranks.
class JobMap {
 public:
  JobMap() = default;
  // Takes the identity of each rank's node, in rank order.
  explicit JobMap(std::span<const NodeIdentity> identities);
  // All ranks here.
  static JobMap of_one_node(std::uint32_t ranks, const NodeIdentity& identity);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(node_of_.size()); }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t node_of(Rank rank) const { return node_of_[rank]; }
  std::uint32_t local_rank_of(Rank rank) const { return local_rank_of_[rank]; }
  const std::vector<Rank>& ranks_of(std::uint32_t node) const { return nodes_[node].ranks; }
  const std::string& host_of(std::uint32_t node) const { return nodes_[node].host; }

  // Such as "ranks 0-1, 3 on fox; rank 2 on owl"; of very many hosts the first ones.
  std::string text() const;

 private:
  struct Node {
    std::string host;
    std::vector<Rank> ranks;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_of_;
  std::vector<std::uint32_t> local_rank_of_;
};

// Such as "rank 3" or "ranks 0-2, 5"; of very many the first ones.
std::string text_of_ranks(std::span<const Rank> ranks);

}  // namespace farsum
