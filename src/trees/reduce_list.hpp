// The steps of one node in a reduce: vector and nodes are halved as often as the shape says (paper 5, section 5.3),
// each group of nodes reduces its piece by a tree of its own, and the pieces are gathered at the root. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/schedule.hpp"

namespace farsum::trees {

// Nodes by position, counted from the root, and the piece of the vector that is theirs.
struct Group {
  std::uint32_t start;
  std::uint32_t size;
  std::uint64_t first;
  std::uint64_t count;

  // Of an odd number the lower half gets one more, of nodes as of elements.
  Group lower() const { return {start, size - size / 2, first, count - count / 2}; }
  Group upper() const { return {start + (size - size / 2), size / 2, first + (count - count / 2), count / 2}; }
};

class ReduceList {
 public:
  // `shape` is normalised, of some elements and nodes.
  ReduceList(const Shape& shape, std::uint32_t node, ChildOrder order);
  std::vector<Step> steps();
  // Once they are made: where each stage of them ends, which are the same on all nodes: each split, the tree in the
  // group, and the gathering. In none of these does a node send another two letters.
  const std::vector<std::size_t>& stage_ends() const { return stage_ends_; }

 private:
  void split();
  void reduce_in_group();
  void gather();

  void receive_combine(std::uint32_t position, std::uint32_t smallest_node);
  std::uint32_t node_at(std::uint32_t position) const;
  // The group of a number, which counts those of the last split by position.
  Group group_of(std::uint32_t number) const;

  // The smallest node of those whose elements are in what the members begin to end of the group hold, before they
  // combine in its tree.
  std::uint32_t smallest_node(std::uint32_t begin, std::uint32_t end) const;
  // The smallest of their positions that is not less than `least`, where begin and end count members after the first
  // `level` splits; the largest number where there is none.
  std::uint64_t smallest_position(std::size_t level, std::uint32_t begin, std::uint32_t end, std::uint32_t least) const;

  // A group that was halved, and the half that the node went to.
  struct Halved {
    Group group;
    bool upper;
  };

  Shape shape_;
  ChildOrder order_;
  std::uint32_t member_;         // the node in its group, by position
  std::uint32_t smallest_held_;  // node, of those whose elements are in what this one holds
  Group group_;
  std::vector<Halved> halved_;
  std::vector<Step> steps_;
  std::vector<std::size_t> stage_ends_;
};

}  // namespace farsum::trees
