// Founding a group: those listed find each other by a key in the memory of their nodes, and learn whether each of them
// has all that it needs. A rank that finds no memory comes all the same and says so; until all know, nothing here
// allocates on its behalf but a letter to another node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/node_team.hpp"
#include "liveness/remote_nodes.hpp"
#include "progress/thread_waiter.hpp"
#include "runtime/group.hpp"
#include "runtime/list_hash.hpp"
#include "runtime/own_node.hpp"
#include "runtime/team_exchange.hpp"

namespace farsum {

// The ranks of a parent that become a group, and where the calling rank is among them.
struct ListedRanks {
  static constexpr const char* creating = "farsum_group_create";

  const Group& parent;
  std::span<const std::uint32_t> members;
  std::uint32_t my_rank = ~std::uint32_t{0};

  Rank operator[](std::size_t member) const { return parent.ranks()[members[member]]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
  std::vector<Rank> ranks() const {
    std::vector<Rank> all;
    all.reserve(members.size());
    for (std::size_t member = 0; member < members.size(); ++member) all.push_back((*this)[member]);
    return all;
  }
  std::uint64_t hash(ListHash::Purpose purpose, std::uint64_t round) const {
    ListHash hash(purpose);
    for (std::size_t member = 0; member < members.size(); ++member) hash.add((*this)[member]);
    hash.add(round);
    return hash.value();
  }
};

// One group on its way.
class GroupFounding {
 public:
  struct Parts {
    const OwnNode& node;
    const RemoteNodes& remote_nodes;
    ThreadWaiter& waiter;
    TeamExchange& exchange;
  };
  // What tells the groups of one list apart: how often the list came before, or a number that its ranks agreed on. A
  // round and a number may be equal.
  struct Name {
    std::uint64_t number = 0;
    bool is_agreed = false;
  };
  // `means` has no team where this rank has found no memory for one.
  GroupFounding(const Parts& parts, const ListedRanks& listed, const Name& name, const Group::Means& means);

  // Ends alike on all members, but for deaths. Where all went well the team has begun, in `block`.
  Status found(HeapExtent& block);

 private:
  // Nodes with members on them, and which of them this one is.
  struct Nodes {
    std::uint32_t count = 0;
    std::uint32_t mine = 0;
  };
  Status reach_team(HeapExtent block, std::uint32_t my_place_here);
  Status agree_on_memory(NodeTeam& node, std::uint32_t& lacking);
  void tell_of_failure();
  Status agree_between_nodes(std::uint32_t& lacking);
  Nodes count_nodes() const;
  Rank first_of_node(const Nodes& nodes, std::uint32_t node) const;
  bool is_first_of_node(std::uint32_t member) const;

  Parts parts_;
  const ListedRanks& listed_;
  const Group::Means& means_;
  std::uint64_t key_;         // of the group's team
  std::uint64_t making_key_;  // of the letters with which the nodes agree
};

}  // namespace farsum
