// Reductions of a group of ranks, wherever they are: what all ranks have, folded element by element, on all of them, on
// one, or a block on each. The parts of a node's ranks are folded first, from the lowest rank on; then those of the
// nodes, in an order that their number alone decides. So the same ranks in the same places get the same bits; and in
// any places, where the order is that of ranks. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collectives/copied_call.hpp"
#include "collectives/copied_shares.hpp"
#include "collectives/fold.hpp"
#include "collectives/group_team.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/peer_memory.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/rooted_rounds.hpp"
#include "collectives/team_post.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"
#include "trees/schedule.hpp"

namespace farsum {

struct GroupReduction {
  enum class Kind : std::uint8_t { allreduce, reduce, reduce_scatter_block };

  Kind kind = Kind::allreduce;
  ops::ElementType type{};  // with op a pair that can be folded
  ops::Operator op{};
  std::uint32_t root = 0;  // of a reduce; else 0
  std::uint64_t count = 0;
  // `count` elements; of a reduce-scatter so many for each rank, by rank.
  const std::byte* mine = nullptr;
  // `count` elements; null where this rank gets none. At the start of `mine`, or apart from it.
  std::byte* result = nullptr;
};

// What a rank reduces with.
struct ReductionMeans {
  const ops::KernelSet& kernels;
  ReduceOrder order = ReduceOrder::nodes;           // ranks that take different ones are told as of different operators
  PeerMemory* peers = nullptr;                      // null: no other rank's memory is copied
  std::size_t letter_bytes = TeamPost::most_bytes;  // of a letter between nodes at most: the same on all ranks
  std::uint32_t degree = 0;  // of the tree between nodes, 0: by their number alone; the same on all ranks
};

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

  // The degree of the tree between so many nodes; 0: they are few, and tell each other at once. `wanted` is a degree,
  // or 0.
  static std::uint32_t degree_between_nodes(std::uint32_t nodes, std::uint32_t wanted);
  // What a node does for each piece: at degree 0 all tell each other, and each folds all of them, from the lowest on.
  // Else they combine up a tree, to the lowest, and are told down it.
  static std::vector<trees::Step> list_between_nodes(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree);

 private:
  struct Call;  // a reduction with what follows from it
  struct Letter;
  class Parts;
  struct Answer;

  Status run_on_one_node(const Call& call);
  Status run_to_root(const Call& call);
  Status agree(const Call& call);
  Status agree_with_root(const Call& call);
  Status agree_as_root(const Call& call);
  Answer compare_at_root(const Call& call) const;
  Answer compare_with(const Call& call, std::uint32_t member) const;
  Status told_by_root(const Call& call, const Answer& answer);
  bool waits_in_vain(const Answer& answer) const;
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
  Status run_on_nodes(const Call& call);
  Status begin_piece(const Call& call, std::size_t done);
  std::size_t piece_between_nodes(const Call& call) const;
  Status fold_in_shares(const Call& call, std::size_t bytes);
  void keep(const Call& call, std::size_t done, std::size_t bytes) const;
  Status combine_nodes(const Call& call, std::size_t done, std::size_t bytes);
  Letter own_letter(const Call& call) const;
  void compare_letter(const Call& call, std::uint32_t first_of_sender, std::span<const std::byte> theirs);
  bool have_all_said_the_same(const Call& call) const;
  Status who_said_otherwise(const Call& call);
  Status told_by_other_nodes(const Call& call);
  std::uint32_t my_place() const { return team_.node().rank(); }

  GroupTeam& team_;
  const ops::KernelSet& kernels_;
  Waiter& waiter_;
  std::uint32_t my_rank_;
  std::uint32_t size_;
  std::optional<NodeRounds> rounds_;
  std::optional<RootedRounds> to_root_;  // of a group of one node
  ReduceOrder order_;
  CopiedShares copies_;
  // Of a group of several nodes.
  std::size_t team_piece_bytes_ = 0;
  bool is_flat_ = false;
  std::optional<RankOrder> by_rank_;
  // On the first rank of each of several nodes: which number this one has; what it does; what goes to others; and
  // where what comes is folded.
  std::uint32_t my_node_ = 0;
  std::vector<trees::Step> list_;
  std::unique_ptr<std::byte[]> letter_;
  std::unique_ptr<std::byte[]> sum_;
};

}  // namespace farsum
