// Reductions of a group on several nodes. Each node folds what its ranks bring, and its first rank combines that with
// the other nodes'. In a reduce that is short a rank leaves its part for the first of its node, which leaves the
// node's for the root: none of them waits for the others but the root, and who has nodes behind it in a tree for these.
// Owner: collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status.hpp"
#include "collectives/group_team.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/reduction_between_nodes.hpp"
#include "collectives/reduction_call.hpp"
#include "collectives/reduction_refusals.hpp"
#include "collectives/rooted_rounds.hpp"
#include "collectives/said_in_rounds.hpp"

namespace farsum {

// One member's view. One thread of a rank calls at a time.
class ReductionsOverNodes {
 public:
  ReductionsOverNodes(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means);
  ReductionsOverNodes(const ReductionsOverNodes&) = delete;  // what goes between nodes knows the order by ranks
  ReductionsOverNodes& operator=(const ReductionsOverNodes&) = delete;
  // Both of this node, and of this member; they live longer.
  void begin(NodeRounds& rounds, RootedRounds& to_first) noexcept;

  Status run(const ReductionCall& call);

 private:
  using Verdict = NodeRoundsBlock::Verdict;
  using Told = FoundAtRoot;

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

  Verdict verdict_of_rounds(const SaidOfCall& said_here) const;
  Status told_by_other_nodes(const ReductionCall& call, const Verdict& verdict);
  Status give_up(Status why);

  std::uint32_t my_place() const { return team_.node().rank(); }
  bool is_at(std::uint32_t rank) const { return team_.places().is_here(rank); }

  GroupTeam& team_;
  std::uint32_t my_rank_;
  NodeRounds* rounds_ = nullptr;
  RootedRounds* to_first_ = nullptr;
  // The same on all nodes.
  std::size_t team_piece_bytes_ = 0;
  std::size_t short_bytes_ = 0;
  bool is_split_ = false;  // a reduce
  std::optional<RankOrder> by_rank_;
  std::optional<ReductionBetweenNodes> between_nodes_;  // on the first rank of each
};

}  // namespace farsum
