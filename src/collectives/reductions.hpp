// Reductions of a group of ranks, wherever they are: what all ranks have, folded element by element, on all of them, on
// one, or a block on each. The parts of a node's ranks are folded first, from the lowest rank on; then those of the
// nodes, in an order that their number and the trees of the job decide. So the same ranks in the same places get the
// same bits; and in any places, where the order is that of ranks. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "collectives/copied_call.hpp"
#include "collectives/copied_shares.hpp"
#include "collectives/group_team.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/reduction_call.hpp"
#include "collectives/reduction_refusals.hpp"
#include "collectives/reductions_over_nodes.hpp"
#include "collectives/rooted_rounds.hpp"
#include "collectives/said_in_rounds.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// One member's view. One thread of a rank calls at a time. Ranks that ask for different reductions are all told so, and
// can go on with the next; those that meet for something else meanwhile are seen where they can be, and then nobody
// goes on.
class GroupReductions {
 public:
  GroupReductions(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means, Waiter& waiter);
  // Called before anything else, when `team` has begun in what lies at the start of this GroupBlock.
  void begin(std::byte* block) noexcept;

  Status run(const GroupReduction& reduction, const char* doing);
  // The team's, but for a group of one node, where it goes the same way as a reduce, and in step with those.
  Status broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing);

 private:
  using Call = ReductionCall;

  Status run_on_one_node(const Call& call);
  Status run_to_root(const Call& call);
  Status agree(const Call& call);
  Status agree_with_root(const Call& call);
  Status agree_as_root(const Call& call);
  FoundAtRoot compare_at_root(const Call& call) const;
  Status told_by_root(const Call& call, const FoundAtRoot& found);
  bool waits_in_vain(const FoundAtRoot& found) const;
  Status give_up(Status why);
  Status run_short(const Call& call);
  void fold_begun(const Call& call, std::byte* into) const;
  Status run_long(const Call& call);
  Status begin_long(const Call& call);
  void tell_of_memory(const Call& call, CopiedCall& copied) const;
  Status run_by_copies(const Call& call, CopiedCall& copied);
  Status run_in_pieces(const Call& call, bool has_begun);
  Status run_in_shares(const Call& call, bool has_begun);
  Status run_scattering(const Call& call, bool has_begun);
  Status begin_piece(const Call& call, std::size_t done);
  Status fold_in_shares(const Call& call, std::size_t bytes);
  RefusedReduction refused(const Call& call) const { return {call.doing, my_rank_, call.said}; }
  std::uint32_t my_place() const { return team_.node().rank(); }

  GroupTeam& team_;
  const ops::KernelSet& kernels_;
  Waiter& waiter_;
  std::uint32_t my_rank_;
  std::uint32_t size_;
  std::optional<NodeRounds> rounds_;
  std::optional<RootedRounds> to_root_;
  ReduceOrder order_;
  CopiedShares copies_;
  std::optional<ReductionsOverNodes> over_nodes_;  // of a group of several
};

}  // namespace farsum
