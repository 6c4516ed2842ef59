// Where the members of a group of ranks are: on this node, and on which others. It is plain data that knows nothing of
// how they meet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace farsum {

// The same on all members but for which node is called this one.
struct GroupPlaces {
  struct Node {
    Rank first = 0;                      // of the job: its member that speaks for it
    std::vector<std::uint32_t> members;  // ranks of the group, ascending
  };
  std::vector<std::uint32_t> here;  // ranks of the group on this node, ascending
  std::vector<Node> remote;         // ascending by their first members

  bool is_one_node() const { return remote.empty(); }
  // Nodes are numbered from 0, ascending by their first members.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(remote.size()) + 1; }
  std::uint32_t my_node() const {
    const auto is_before = [&](const Node& node) { return node.members.front() < here.front(); };
    return static_cast<std::uint32_t>(std::count_if(remote.begin(), remote.end(), is_before));
  }
  // Of a node other than this one, whose number is `mine`.
  const Node& node(std::uint32_t number, std::uint32_t mine) const {
    return remote[number < mine ? number : number - 1];
  }
  // Place among the members here of a rank of the group that is.
  std::uint32_t place_of(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(std::lower_bound(here.begin(), here.end(), rank) - here.begin());
  }
  bool is_here(std::uint32_t rank) const { return std::binary_search(here.begin(), here.end(), rank); }
};

}  // namespace farsum
