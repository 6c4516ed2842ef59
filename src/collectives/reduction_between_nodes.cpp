#include "collectives/reduction_between_nodes.hpp"

#include <utility>

#include <fmt/format.h>

#include "collectives/reduction_refusals.hpp"

namespace farsum {

using Finding = NodeRoundsBlock::Finding;

ReductionBetweenNodes::ReductionBetweenNodes(const Parts& parts)
    : team_(parts.team),
      my_rank_(parts.my_rank),
      lists_(parts.team.places().nodes(), parts.team.places().my_node(), parts.degree),
      by_rank_(parts.by_rank) {
  if (by_rank_ != nullptr) by_rank_->plan(team_.places(), lists_.all());
  if (parts.rule != nullptr) lists_.choose_piece_trees(*parts.rule, parts.piece_bytes);
  if (parts.splits != 0)
    by_halves_.emplace(team_, parts.splits, ReductionLists::tree_degree(parts.degree), parts.piece_bytes);
  letter_ = std::make_unique_for_overwrite<std::byte[]>(parts.letter_bytes);
  sum_ = std::make_unique_for_overwrite<std::byte[]>(parts.letter_bytes);
  answers_.reserve(team_.places().nodes());
}

ReductionLetters ReductionBetweenNodes::letters_of(const ReductionCall& call, Verdict& verdict, std::size_t bytes,
                                                   std::uint32_t degree) {
  using Folding = ReductionLetters::Folding;
  const ReductionLetters::Means means{.team = team_,
                                      .rounds = *rounds_,
                                      .my_rank = my_rank_,
                                      .list = lists_.all(),
                                      .by_rank = by_rank_,
                                      .letter = letter_.get(),
                                      .sum = sum_.get()};
  return {means, call, verdict, bytes, degree == 0 ? Folding::from_the_lowest : Folding::in_turn};
}

// Ranks that have called different things would wait for each other in different trees; behind the first piece all have
// said the same.
Status ReductionBetweenNodes::combine_for_all(const ReductionCall& call, const PieceForAll& piece) {
  const bool is_first = piece.done == 0;
  const ReductionLists::PieceTree* const tree =
      is_first ? nullptr : lists_.tree_of_further_piece(call.asked.op, call.asked.type);
  const std::uint32_t degree = tree != nullptr ? tree->degree : lists_.degree();
  ReductionLetters letters = letters_of(call, rounds_->verdict(), piece.bytes, degree);
  if (!is_first) letters.compare_no_more();
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (is_first) drop_answers();
  const std::span<const trees::Step> steps = tree != nullptr ? tree->list : lists_.all();
  if (Status status = team_.walk_on(steps, letters, call.doing); !status.is_ok()) return status;
  if (!letters.are_the_same()) return answer(call, letters, lists_.my_node(), true);
  team_.note_all_met();
  letters.finish();
  return {};
}

// Nothing is split before all know that they split the same.
Status ReductionBetweenNodes::combine_first_at_root(const ReductionCall& call, const FirstPiece& piece,
                                                    Verdict& verdict) {
  if (!by_halves_) return combine_at_root(call, piece, verdict);
  Status status = combine_at_root(call, {.bytes = 0, .all_wait = piece.all_wait}, verdict);
  const bool goes_on = status.is_ok() && verdict.finding == Finding::the_same && piece.bytes != 0;
  return goes_on ? add_at_root(call, piece.bytes) : std::move(status);
}

// The first piece of all nodes, and what they have called. Few tell all others that, so that whoever waits for another
// call of theirs hears of it; of these the root alone waits, or, where much is to come, all. More tell it up a tree, to
// node 0, who tells the root.
Status ReductionBetweenNodes::combine_at_root(const ReductionCall& call, const FirstPiece& piece, Verdict& verdict) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  ReductionLetters letters = letters_of(call, verdict, piece.bytes, lists_.degree());
  letters.hold(ReductionLetters::Holding::to_root, root_node);
  // By ranks a letter holds what this node's ranks are neighbours of, which is planned for an answer that all get.
  const bool all_wait = by_rank_ != nullptr || piece.all_wait;
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (!lists_.is_flat()) return combine_in_tree(call, letters, all_wait);
  const bool waits = all_wait || root_node == lists_.my_node();
  const std::span<const trees::Step> steps = waits ? lists_.all() : lists_.up();
  if (Status status = team_.walk_on(steps, letters, call.doing); !status.is_ok()) return status;
  if (all_wait && letters.are_the_same()) team_.note_all_met();
  if (by_rank_ != nullptr || root_node == lists_.my_node()) letters.finish();
  return {};
}

// Who has told its parent goes on, but where all wait; and then those behind it in the tree may have gone on, too. Node
// 0 tells the root, apart or on the way down.
Status ReductionBetweenNodes::combine_in_tree(const ReductionCall& call, ReductionLetters& letters, bool all_wait) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  const auto walk = [&](std::span<const trees::Step> steps, ReductionLetters::Holding holding) {
    letters.hold(holding, root_node);
    return team_.walk_on(steps, letters, call.doing);
  };
  drop_answers();
  if (Status status = walk(lists_.up(), ReductionLetters::Holding::all); !status.is_ok()) return status;
  const bool is_told_on_the_way = by_rank_ != nullptr || (all_wait && lists_.parent_of(root_node) == 0U);
  if (!is_told_on_the_way) {
    if (Status status = tell_root(call, letters, root_node); !status.is_ok()) return status;
  }
  if (all_wait) {
    const ReductionLetters::Holding holding =
        is_told_on_the_way ? ReductionLetters::Holding::to_root : ReductionLetters::Holding::none;
    if (Status status = walk(lists_.down(), holding); !status.is_ok()) return status;
    if (letters.are_the_same()) team_.note_all_met();
  }
  if (by_rank_ != nullptr) letters.finish();
  if (letters.are_the_same()) return {};
  return answer(call, letters, lists_.my_node() != 0 || is_told_on_the_way ? lists_.my_node() : root_node, all_wait);
}

// By a letter of its own, where the root is not on node 0.
Status ReductionBetweenNodes::tell_root(const ReductionCall& call, ReductionLetters& letters, std::uint32_t root_node) {
  if (root_node == 0 || (lists_.my_node() != 0 && lists_.my_node() != root_node)) return {};
  letters.hold(ReductionLetters::Holding::to_root, root_node);
  const trees::Step step =
      lists_.my_node() == 0 ? ReductionLists::letter_to(root_node) : ReductionLists::letter_from(0);
  return team_.walk_on({&step, 1}, letters, call.doing);
}

Status ReductionBetweenNodes::add_at_root(const ReductionCall& call, std::size_t bytes) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  Verdict verdict{{}, 0, Finding::the_same};
  if (by_halves_) return add_by_halves(call, bytes, root_node);
  ReductionLetters letters = letters_of(call, verdict, bytes, lists_.degree());
  letters.compare_no_more();
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (by_rank_ != nullptr) {
    if (Status status = team_.walk_on(lists_.all(), letters, call.doing); !status.is_ok()) return status;
    team_.note_all_met();
    letters.finish();
    return {};
  }
  if (!lists_.is_flat()) {
    if (Status status = team_.walk_on(lists_.up(), letters, call.doing); !status.is_ok()) return status;
    return tell_root(call, letters, root_node);
  }
  if (root_node != lists_.my_node()) {
    const trees::Step step = ReductionLists::letter_to(root_node);
    return team_.walk_on({&step, 1}, letters, call.doing);
  }
  if (Status status = team_.walk_on(lists_.down(), letters, call.doing); !status.is_ok()) return status;
  letters.finish();
  return {};
}

// To node 0, which tells the root.
Status ReductionBetweenNodes::add_by_halves(const ReductionCall& call, std::size_t bytes, std::uint32_t root_node) {
  const auto begin = [&] { return begin_round(call); };
  const auto told_odd = [&](std::uint32_t node) {
    return no_reduction_by({call.doing, my_rank_, call.said}, name_of_node(team_.members_of(node).front()));
  };
  const SplitReduce::Piece piece{
      .fold = call.fold, .held = {rounds_->answer(), bytes}, .begin_round = begin, .odd = told_odd};
  if (Status status = by_halves_->run(team_, piece, call.doing); !status.is_ok()) return status;
  if (Status status = begin_round(call); !status.is_ok()) return status;
  Verdict verdict{{}, 0, Finding::the_same};
  ReductionLetters letters = letters_of(call, verdict, bytes, ReductionLists::tree_degree(lists_.degree()));
  letters.compare_no_more();
  return tell_root(call, letters, root_node);
}

// Some have called something else, and may wait for what this node would tell them if it had called that: the nodes
// behind it in the tree; and of node 0 any node, if it takes itself for the root's. Who waits for nothing finds it when
// it next takes a letter from the same node.
Status ReductionBetweenNodes::answer(const ReductionCall& call, ReductionLetters& letters, std::uint32_t told_apart,
                                     bool all_wait) {
  if (lists_.is_flat()) return {};
  answers_.clear();
  for (std::uint32_t node = 1; node < team_.places().nodes(); ++node) {
    const bool waits = lists_.is_behind(node) ? !all_wait : lists_.my_node() == 0;
    if (waits && node != told_apart) answers_.push_back(ReductionLists::letter_to(node));
  }
  return team_.walk_on(answers_, letters, call.doing);
}

// Of earlier rounds, for which this node has not waited.
void ReductionBetweenNodes::drop_answers() {
  if (lists_.is_flat() || lists_.my_node() == 0) return;
  team_.drop_letters_of(0);
  if (const auto parent = lists_.parent_of(lists_.my_node()); parent != 0U) team_.drop_letters_of(*parent);
}

// Before the letters of a call that may begin behind others in which nobody waited for all.
Status ReductionBetweenNodes::begin_round(const ReductionCall& call) {
  OtherCall other;
  Status status = team_.begin_round(other, call.doing);
  if (status.is_ok() && !other.is_none())
    return no_reduction_by({call.doing, my_rank_, call.said}, fmt::format("rank {} of the job", other.rank));
  return status;
}

// Where a rank is dead they learn of it otherwise.
void ReductionBetweenNodes::tell_of_the_end(const ReductionCall& call) {
  Verdict verdict{{}, my_rank_, Finding::no_reduction};
  ReductionLetters letters = letters_of(call, verdict, 0, lists_.degree());
  answers_.clear();
  for (std::uint32_t node = 0; node < team_.places().nodes(); ++node) {
    const bool is_told = lists_.my_node() == 0 ? node != 0 : lists_.sends_to(node);
    if (is_told) answers_.push_back(ReductionLists::letter_to(node));
  }
  if (begin_round(call).is_ok()) (void)team_.walk_on(answers_, letters, call.doing);
}

}  // namespace farsum
