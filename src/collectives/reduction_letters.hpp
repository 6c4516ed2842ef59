// What the nodes of a group tell each other in a reduction: what their ranks have called, and what they have of a
// piece. The part of this node, which becomes that of all, is the rounds' answer; or, by ranks, a part for each aligned
// block of them. By the first rank of a node. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "collectives/group_team.hpp"
#include "collectives/letter_walk.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/reduction_call.hpp"
#include "trees/schedule.hpp"

namespace farsum {

class ReductionLetters final : public LetterContent {
 public:
  using Verdict = NodeRoundsBlock::Verdict;
  // Before the elements, of which there are none where the sender knows of ranks that have said different things, or
  // brings none.
  static const std::size_t head_bytes;

  // What a rank has for all its reductions.
  struct Means {
    const GroupTeam& team;
    NodeRounds& rounds;
    std::uint32_t my_rank;
    std::span<const trees::Step> list;  // of which steps by ranks are counted
    RankOrder* by_rank;                 // null: by nodes
    std::byte* letter;                  // what goes to others
    std::byte* sum;                     // where what comes is folded
  };
  // How what comes becomes the answer: each part where it comes, or copied in its place, as a tree has it; or all parts
  // from that of the lowest node on.
  enum class Folding : std::uint8_t { in_turn, from_the_lowest };
  // Which letters hold elements: all; or, of a reduce, those on the way to the root's node.
  enum class Holding : std::uint8_t { all, none, to_root };

  // Of a piece of so many bytes. What others have called is told by `verdict`, and so is what this node knows before.
  ReductionLetters(const Means& means, const ReductionCall& call, Verdict& verdict, std::size_t bytes, Folding folding);

  // Behind the first piece all have said the same.
  void compare_no_more() { compares_ = false; }
  void hold(Holding holding, std::uint32_t root_node) {
    holding_ = holding;
    root_node_ = root_node;
  }
  bool are_the_same() const { return verdict_.finding == NodeRoundsBlock::Finding::the_same; }

  std::span<const std::byte> held(const trees::Step& step) override;
  Status take(const trees::Step& step, std::span<const std::byte> letter) override;
  // Where all have said the same, once all has been taken.
  void finish();

 private:
  struct Head;

  std::byte* answer() const { return means_.rounds.answer(); }
  RankOrder* by_rank() const { return means_.by_rank; }
  std::uint32_t my_node() const { return means_.team.places().my_node(); }
  std::size_t number_of(const trees::Step& step) const { return static_cast<std::size_t>(&step - means_.list.data()); }
  std::size_t bytes_with(const trees::Step& step, std::uint32_t to) const;
  void use(const trees::Step& step, const std::byte* theirs);
  void compare(std::uint32_t sender, std::span<const std::byte> theirs);
  void add_own();
  void add(const std::byte* part);

  Means means_;
  const ReductionCall& call_;
  Verdict& verdict_;
  std::size_t bytes_;
  Folding folding_;
  Holding holding_ = Holding::all;
  std::uint32_t root_node_ = 0;
  bool compares_ = true;
  bool has_first_ = false;
  bool has_own_ = false;
};

}  // namespace farsum
