// What a node of several does between nodes in the reductions of a group: its lists of steps, and what follows from
// them. Worked out when the group is made. Pure. Owner: collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/piece_trees.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"
#include "trees/schedule.hpp"

namespace farsum {

class ReductionLists {
 public:
  // What this node does for a further piece.
  struct PieceTree {
    std::uint32_t degree;
    std::vector<trees::Step> list;
  };

  // Of node `mine` of so many, at a degree as degree_between() says it.
  ReductionLists(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree);
  // From now on pieces of so many bytes behind the first take trees of their own, where any of these is another.
  void choose_piece_trees(const cost::TreeRule& rule, std::size_t bytes);

  // The degree of the tree between so many nodes; 0: they are few, and tell each other at once. `wanted` is a degree,
  // or 0.
  static std::uint32_t degree_between(std::uint32_t nodes, std::uint32_t wanted);
  // Of a tree, be it for what few nodes do not tell each other at once.
  static std::uint32_t tree_degree(std::uint32_t degree) { return std::max(degree, 2U); }
  // What a node does for each piece that all nodes get: at degree 0 all tell each other, and each folds all of them,
  // from the lowest on. Else they combine up a tree, to the lowest, and are told down it.
  static std::vector<trees::Step> list_of(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree);

  static trees::Step letter_to(std::uint32_t node) { return {trees::Action::send, false, node, 0, 1}; }
  static trees::Step letter_from(std::uint32_t node) { return {trees::Action::receive_copy, false, node, 0, 1}; }

  std::uint32_t my_node() const { return mine_; }
  std::uint32_t degree() const { return degree_; }
  bool is_flat() const { return degree_ == 0; }
  std::span<const trees::Step> all() const { return list_; }
  // The first steps bring the answer to node 0, or, of a flat list, tell the others of this node's part.
  std::span<const trees::Step> up() const { return all().first(up_steps_); }
  std::span<const trees::Step> down() const { return all().subspan(up_steps_); }
  // Null: that of the first piece.
  const PieceTree* tree_of_further_piece(ops::Operator op, ops::ElementType type) const;

  // In a tree; none of node 0.
  std::optional<std::uint32_t> parent_of(std::uint32_t node) const;
  // Whether this node hears from that one on the way up.
  bool is_behind(std::uint32_t node) const;
  bool sends_to(std::uint32_t node) const;

 private:
  std::uint32_t nodes_;
  std::uint32_t mine_;
  std::uint32_t degree_;
  std::vector<trees::Step> list_;
  std::size_t up_steps_;
  // Where further pieces have trees of their own: which, of those that any may take.
  std::optional<cost::PieceTrees> piece_choices_;
  std::vector<PieceTree> piece_trees_;
};

}  // namespace farsum
