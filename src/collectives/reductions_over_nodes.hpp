// Reductions of a group on several nodes. Each node folds what its ranks bring, and its first rank combines that with
// the other nodes'. In a reduce that is short a rank leaves its part for the first of its node, which leaves the
// node's for the root: none of them waits for the others but the root, and who has nodes behind it in a tree for these.
// Owner: collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/group_team.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/reduction_call.hpp"
#include "collectives/reduction_letters.hpp"
#include "collectives/reduction_refusals.hpp"
#include "collectives/rooted_rounds.hpp"
#include "collectives/said_in_rounds.hpp"
#include "collectives/split_reduce.hpp"
#include "cost/piece_trees.hpp"
#include "trees/schedule.hpp"

namespace farsum {

// One member's view. One thread of a rank calls at a time.
class ReductionsOverNodes {
 public:
  ReductionsOverNodes(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means);
  // Both of this node, and of this member; they live longer.
  void begin(NodeRounds& rounds, RootedRounds& to_first) noexcept;

  Status run(const ReductionCall& call);

  // The degree of the tree between so many nodes; 0: they are few, and tell each other at once. `wanted` is a degree,
  // or 0.
  static std::uint32_t degree_between(std::uint32_t nodes, std::uint32_t wanted);
  // What a node does for each piece that all nodes get: at degree 0 all tell each other, and each folds all of them,
  // from the lowest on. Else they combine up a tree, to the lowest, and are told down it.
  static std::vector<trees::Step> list_of(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree);

 private:
  using Verdict = NodeRoundsBlock::Verdict;
  using Told = FoundAtRoot;
  // What this node does for a further piece.
  struct PieceTree {
    std::uint32_t degree;
    std::vector<trees::Step> list;
  };

  void choose_piece_trees(const cost::TreeRule& rule);
  ReductionLetters letters_of(const ReductionCall& call, Verdict& verdict, std::size_t bytes, std::uint32_t degree);
  Status run_for_all(const ReductionCall& call);
  Status run_to_root(const ReductionCall& call);
  Status leave_for_first(const ReductionCall& call, const SaidOfCall& said_here);
  Status be_first(const ReductionCall& call, const SaidOfCall& said_here);
  Told compare_here(const SaidOfCall& said_here) const;
  static Told told_of(const Verdict& verdict);
  Verdict verdict_of(const Told& told) const;
  Status end_for_all_nodes(const ReductionCall& call, Status why);
  Status told_by_first(const ReductionCall& call, const Told& told);
  void fold_alone(const ReductionCall& call, std::size_t bytes);
  Status go_on_to_root(const ReductionCall& call);

  // On a vector that is split all agree first.
  bool is_short(const ReductionCall& call) const {
    return call.bytes <= (is_split_ ? 0 : std::min(short_bytes_, piece_bytes(call)));
  }
  std::size_t first_piece(const ReductionCall& call) const { return std::min(call.bytes, piece_bytes(call)); }
  Status begin_piece(const ReductionCall& call, const SaidOfCall& said_here, std::size_t done);
  std::size_t piece_bytes(const ReductionCall& call) const;
  Status fold_in_shares(const ReductionCall& call, std::size_t bytes);

  const PieceTree* tree_of_piece(const ReductionCall& call, std::size_t done) const;
  Status combine_for_all(const ReductionCall& call, const SaidOfCall& said_here, std::size_t done, std::size_t bytes);
  Status combine_at_root(const ReductionCall& call, std::size_t bytes, Verdict& verdict);
  Status combine_in_tree(const ReductionCall& call, ReductionLetters& letters, bool all_wait);
  Status combine_first_piece(const ReductionCall& call, std::size_t bytes, Verdict& verdict);
  Status add_by_halves(const ReductionCall& call, std::size_t bytes, std::uint32_t root_node);
  Status add_piece_at_root(const ReductionCall& call, std::size_t bytes);
  Status begin_round(const ReductionCall& call);
  Status tell_root(const ReductionCall& call, ReductionLetters& letters, std::uint32_t root_node);
  Status answer(const ReductionCall& call, ReductionLetters& letters, std::uint32_t told_apart, bool all_wait);
  void drop_answers();

  Verdict verdict_of_rounds(const SaidOfCall& said_here) const;
  Status told_by_other_nodes(const ReductionCall& call, const Verdict& verdict);
  Status give_up(Status why);

  bool is_flat() const { return degree_ == 0; }
  std::uint32_t tree_degree() const { return std::max(degree_, 2U); }
  std::uint32_t my_place() const { return team_.node().rank(); }
  bool is_at(std::uint32_t rank) const { return team_.places().is_here(rank); }
  // In the tree; none of node 0.
  std::optional<std::uint32_t> parent_of(std::uint32_t node) const;
  std::span<const trees::Step> up() const { return std::span(list_).first(up_steps_); }
  std::span<const trees::Step> down() const { return std::span(list_).subspan(up_steps_); }

  GroupTeam& team_;
  std::uint32_t my_rank_;
  NodeRounds* rounds_ = nullptr;
  RootedRounds* to_first_ = nullptr;
  // The same on all nodes.
  std::size_t team_piece_bytes_ = 0;
  std::size_t short_bytes_ = 0;
  std::uint32_t degree_ = 0;
  bool is_split_ = false;  // a reduce
  std::optional<RankOrder> by_rank_;
  // On the first rank of each node: which number it has; what it does where all get the answer, of which the first
  // steps bring it to node 0, or, of a flat list, tell the others of this node's part; what goes to others; where what
  // comes is folded; and room for as many steps as there are nodes.
  std::uint32_t my_node_ = 0;
  std::vector<trees::Step> list_;
  std::size_t up_steps_ = 0;
  // On the same, where further pieces have trees of their own: which, of those that any may take.
  std::optional<cost::PieceTrees> piece_choices_;
  std::vector<PieceTree> piece_trees_;
  std::optional<SplitReduce> by_halves_;  // where it is
  std::unique_ptr<std::byte[]> letter_;
  std::unique_ptr<std::byte[]> sum_;
  std::vector<trees::Step> answers_;
};

}  // namespace farsum
