// How the nodes of a group combine what each has of a reduction, a piece after the other: what goes in which letters,
// who waits for them, and who is told that ranks have called different things. By the first rank of each node.
// Owner: collectives.
#pragma once

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
#include "collectives/reduction_lists.hpp"
#include "collectives/split_reduce.hpp"
#include "trees/schedule.hpp"

namespace farsum {

// What this node has of a piece is the rounds' answer, or, by ranks, the pieces of its ranks; what all have becomes the
// answer. All first ranks make the same calls of this in the same order.
class ReductionBetweenNodes {
 public:
  using Verdict = NodeRoundsBlock::Verdict;
  struct Parts {
    GroupTeam& team;
    std::uint32_t my_rank;
    std::uint32_t degree;        // as ReductionLists::degree_between() says it
    std::size_t letter_bytes;    // as of ReductionMeans
    std::size_t piece_bytes;     // at most
    std::uint32_t splits;        // of a reduce; 0: none is
    const cost::TreeRule* rule;  // for pieces behind the first; null: they go as the first
    RankOrder* by_rank;          // null: by nodes
  };
  explicit ReductionBetweenNodes(const Parts& parts);
  // Of this node; it lives longer.
  void begin(NodeRounds& rounds) noexcept { rounds_ = &rounds; }

  // A piece that all get, which begins `done` bytes into the vector. The rounds' verdict says what this node knows of
  // what ranks have called before the first, and then what all know.
  struct PieceForAll {
    std::size_t done;
    std::size_t bytes;
  };
  Status combine_for_all(const ReductionCall& call, const PieceForAll& piece);
  // The first piece of a reduce. `verdict` says what this node knows, and then what it has heard.
  struct FirstPiece {
    std::size_t bytes;
    bool all_wait;  // else the root's node alone, and who has nodes behind it in a tree for these
  };
  Status combine_first_at_root(const ReductionCall& call, const FirstPiece& piece, Verdict& verdict);
  // A further one, of which nobody else hears anything.
  Status add_at_root(const ReductionCall& call, std::size_t bytes);
  // By a node that has ended before it has told the others what it called: it tells them that it calls nothing more.
  // Nothing is waited for but room.
  void tell_of_the_end(const ReductionCall& call);

 private:
  ReductionLetters letters_of(const ReductionCall& call, Verdict& verdict, std::size_t bytes, std::uint32_t degree);
  Status combine_at_root(const ReductionCall& call, const FirstPiece& piece, Verdict& verdict);
  Status combine_in_tree(const ReductionCall& call, ReductionLetters& letters, bool all_wait);
  Status add_by_halves(const ReductionCall& call, std::size_t bytes, std::uint32_t root_node);
  Status begin_round(const ReductionCall& call);
  Status tell_root(const ReductionCall& call, ReductionLetters& letters, std::uint32_t root_node);
  Status answer(const ReductionCall& call, ReductionLetters& letters, std::uint32_t told_apart, bool all_wait);
  void drop_answers();

  GroupTeam& team_;
  std::uint32_t my_rank_;
  ReductionLists lists_;
  RankOrder* by_rank_;
  NodeRounds* rounds_ = nullptr;
  std::optional<SplitReduce> by_halves_;  // where a reduce is split
  // What goes to others; where what comes is folded; room for as many steps as there are nodes.
  std::unique_ptr<std::byte[]> letter_;
  std::unique_ptr<std::byte[]> sum_;
  std::vector<trees::Step> answers_;
};

}  // namespace farsum
