#include "collectives/reductions_over_nodes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collectives/shares.hpp"
#include "cost/meeting_model.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

using Finding = NodeRoundsBlock::Finding;

// Of the members on a node, the one that speaks for it.
constexpr std::uint32_t first_place = 0;

trees::Step letter_to(std::uint32_t node) { return {trees::Action::send, false, node, 0, 1}; }
trees::Step letter_from(std::uint32_t node) { return {trees::Action::receive_copy, false, node, 0, 1}; }

}  // namespace

ReductionsOverNodes::ReductionsOverNodes(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means)
    : team_(team), my_rank_(my_rank) {
  const GroupPlaces& places = team.places();
  std::size_t most_here = places.here.size();
  for (const GroupPlaces::Node& node : places.remote) most_here = std::max(most_here, node.members.size());
  const auto most = static_cast<std::uint32_t>(most_here);
  const std::size_t room = (means.letter_bytes - ReductionLetters::head_bytes) / cache_line_bytes * cache_line_bytes;
  team_piece_bytes_ = std::min(NodeRoundsBlock::piece_bytes(most), room);
  short_bytes_ = std::min(NodeRoundsBlock::slot_bytes(most) - sizeof(Told), team_piece_bytes_);
  degree_ = degree_between(places.nodes(), means.degree);
  if (means.order == ReduceOrder::ranks)
    by_rank_.emplace(places, degree_, RankOrder::Limits{.piece_bytes = team_piece_bytes_, .letter_bytes = room});
  is_split_ = !by_rank_ && SplitReduce::parts(places.nodes(), means.splits) > 1;
  if (!team.is_first_here()) return;
  my_node_ = places.my_node();
  list_ = list_of(places.nodes(), my_node_, degree_);
  const auto is_of_second_half = [](const trees::Step& step) { return step.action == trees::Action::receive_copy; };
  const auto first_down = std::find_if(list_.begin(), list_.end(), is_of_second_half);
  up_steps_ = static_cast<std::size_t>(first_down - list_.begin());
  // Node 0 of a tree copies nothing: what it sends goes down.
  if (!is_flat() && my_node_ == 0) up_steps_ = list_.size() / 2;
  if (by_rank_) by_rank_->plan(places, list_);
  if (means.pieces != nullptr && !by_rank_) choose_piece_trees(*means.pieces);
  if (is_split_) by_halves_.emplace(team, means.splits, tree_degree(), team_piece_bytes_);
  letter_ = std::make_unique_for_overwrite<std::byte[]>(means.letter_bytes);
  sum_ = std::make_unique_for_overwrite<std::byte[]>(means.letter_bytes);
  answers_.reserve(places.nodes());
}

// None, where all are that of the first piece.
void ReductionsOverNodes::choose_piece_trees(const cost::TreeRule& rule) {
  const std::uint32_t nodes = team_.places().nodes();
  cost::PieceTrees choices(rule, nodes, team_piece_bytes_);
  const auto is_usual = [&](std::uint32_t wanted) { return degree_between(nodes, wanted) == degree_; };
  if (std::ranges::all_of(choices.degrees(), is_usual)) return;
  for (const std::uint32_t wanted : choices.degrees()) {
    const std::uint32_t degree = degree_between(nodes, wanted);
    piece_trees_.push_back({.degree = degree, .list = list_of(nodes, my_node_, degree)});
  }
  piece_choices_ = std::move(choices);
}

ReductionLetters ReductionsOverNodes::letters_of(const ReductionCall& call, Verdict& verdict, std::size_t bytes,
                                                 std::uint32_t degree) {
  using Folding = ReductionLetters::Folding;
  const ReductionLetters::Means means{.team = team_,
                                      .rounds = *rounds_,
                                      .my_rank = my_rank_,
                                      .list = list_,
                                      .by_rank = by_rank_ ? &*by_rank_ : nullptr,
                                      .letter = letter_.get(),
                                      .sum = sum_.get()};
  return {means, call, verdict, bytes, degree == 0 ? Folding::from_the_lowest : Folding::in_turn};
}

void ReductionsOverNodes::begin(NodeRounds& rounds, RootedRounds& to_first) noexcept {
  rounds_ = &rounds;
  to_first_ = &to_first;
}

std::uint32_t ReductionsOverNodes::degree_between(std::uint32_t nodes, std::uint32_t wanted) {
  if (wanted != 0) return wanted;
  return cost::meet_at_once(nodes) ? 0 : 2;
}

std::vector<trees::Step> ReductionsOverNodes::list_of(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree) {
  if (degree != 0)
    return trees::steps_of({.kind = trees::Kind::allreduce, .nodes = nodes, .elements = 1, .degree = degree}, mine);
  std::vector<trees::Step> list;
  for (const auto step : {letter_to, letter_from}) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (node != mine) list.push_back(step(node));
    }
  }
  return list;
}

Status ReductionsOverNodes::run(const ReductionCall& call) {
  if (Status status = rounds_->why_broken(); !status.is_ok()) return status;
  return call.asked.kind == GroupReduction::Kind::reduce ? run_to_root(call) : run_for_all(call);
}

// Each node folds a piece, its first rank combines it with those of the others, and tells the rest. Where that fails
// the others would wait for ever, so they are told.
Status ReductionsOverNodes::run_for_all(const ReductionCall& call) {
  SaidOfCall said_here = call.said;
  say_what_came_before(said_here, to_first_->calls());
  const std::size_t most = piece_bytes(call);
  std::size_t done = 0;
  do {
    const std::size_t bytes = std::min(most, call.bytes - done);
    copy_reduced(rounds_->piece(my_place()), call.asked.mine + done, bytes);
    if (Status status = begin_piece(call, said_here, done); !status.is_ok())
      return done == 0 && team_.is_first_here() ? end_for_all_nodes(call, std::move(status)) : std::move(status);
    const bool differs_here = done == 0 && !have_all_said(*rounds_, said_here);
    if (!differs_here) {
      if (Status status = fold_in_shares(call, bytes); !status.is_ok()) return status;
    }
    if (team_.is_first_here()) {
      if (Status status = combine_for_all(call, said_here, done, differs_here ? 0 : bytes); !status.is_ok())
        return give_up(std::move(status));
    }
    if (differs_here) return who_said_otherwise(*rounds_, team_.places(), {call.doing, my_rank_, said_here});
    if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
    if (done == 0 && rounds_->verdict().finding != Finding::the_same)
      return told_by_other_nodes(call, rounds_->verdict());
    if (bytes == 0 && call.bytes != 0) return too_scattered({call.doing, my_rank_, call.said});
    call.keep(rounds_->answer(), done, bytes);
    done += bytes;
  } while (done < call.bytes);
  return {};
}

// 0: none goes, and all nodes tell each other only what they have called.
std::size_t ReductionsOverNodes::piece_bytes(const ReductionCall& call) const {
  return by_rank_ ? by_rank_->piece_bytes(call.fold.element_bytes()) : team_piece_bytes_;
}

// All have written the piece that begins there.
Status ReductionsOverNodes::begin_piece(const ReductionCall& call, const SaidOfCall& said_here, std::size_t done) {
  const auto nothing = [] {};
  return done == 0 ? rounds_->begin(said_here, {}, nothing, call.doing) : rounds_->next_step(call.doing);
}

// So much of all pieces becomes the answer; or, by ranks, of each aligned block of ranks what lies where the first
// one's piece was. No line of it is written by two.
Status ReductionsOverNodes::fold_in_shares(const ReductionCall& call, std::size_t bytes) {
  const auto [from, own_bytes] = share_of_member(bytes, my_place(), rounds_->ranks());
  if (by_rank_) {
    const auto part = [&, from = from](std::uint32_t rank) {
      return rounds_->piece(team_.places().place_of(rank)) + from;
    };
    for (const RankOrder::Join& join : by_rank_->joins_here())
      call.fold.one_more(part(join.left), part(join.right), own_bytes);
  } else {
    call.fold.all(rounds_->answer() + from, own_bytes, rounds_->ranks(),
                  [&, from = from](std::uint32_t member) { return rounds_->piece(member) + from; });
  }
  return rounds_->next_step(call.doing);
}

// Null: that of the first piece. Ranks that have called different things would wait for each other in different trees;
// behind the first piece all have said the same.
const ReductionsOverNodes::PieceTree* ReductionsOverNodes::tree_of_piece(const ReductionCall& call,
                                                                         std::size_t done) const {
  if (done == 0 || !piece_choices_) return nullptr;
  return &piece_trees_[piece_choices_->number_of(call.asked.op, call.asked.type)];
}

// The answer of this node becomes that of all. By the first rank of each node.
Status ReductionsOverNodes::combine_for_all(const ReductionCall& call, const SaidOfCall& said_here, std::size_t done,
                                            std::size_t bytes) {
  Verdict& verdict = rounds_->verdict();
  if (done == 0) verdict = verdict_of_rounds(said_here);
  const PieceTree* const tree = tree_of_piece(call, done);
  ReductionLetters letters = letters_of(call, verdict, bytes, tree != nullptr ? tree->degree : degree_);
  if (done != 0) letters.compare_no_more();
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (done == 0) drop_answers();
  const std::span<const trees::Step> steps = tree != nullptr ? tree->list : list_;
  if (Status status = team_.walk_on(steps, letters, call.doing); !status.is_ok()) return status;
  if (!letters.are_the_same()) return answer(call, letters, my_node_, true);
  team_.note_all_met();
  letters.finish();
  return {};
}

// Before the letters of a call that may begin behind others in which nobody waited for all.
Status ReductionsOverNodes::begin_round(const ReductionCall& call) {
  OtherCall other;
  Status status = team_.begin_round(other, call.doing);
  if (status.is_ok() && !other.is_none())
    return no_reduction_by({call.doing, my_rank_, call.said}, fmt::format("rank {} of the job", other.rank));
  return status;
}

// Where the group is of no further use to this node, nor to those that wait for it.
ReductionsOverNodes::Verdict ReductionsOverNodes::verdict_of(const Told& told) const {
  switch (told.what) {
    case Told::What::the_same:
      return {{}, 0, Finding::the_same};
    case Told::What::another_reduction:
      return {told.said, told.rank, Finding::another_reduction};
    case Told::What::no_reduction:
    case Told::What::gone_on:
    case Told::What::out_of_step:
      break;
  }
  return {{}, my_rank_, Finding::no_reduction};
}

// By the first rank of a node that has ended before it has told the others what it called, and tells them that it calls
// nothing more. Where a rank is dead they learn of it otherwise. Nothing is waited for but room.
Status ReductionsOverNodes::end_for_all_nodes(const ReductionCall& call, Status why) {
  if (why.code() != Code::argument) return why;
  Verdict verdict{{}, my_rank_, Finding::no_reduction};
  ReductionLetters letters = letters_of(call, verdict, 0, degree_);
  answers_.clear();
  for (std::uint32_t node = 0; node < team_.places().nodes(); ++node) {
    const auto goes_there = [&](const trees::Step& step) {
      return step.action == trees::Action::send && step.peer == node;
    };
    const bool is_told = my_node_ == 0 ? node != 0 : std::any_of(list_.begin(), list_.end(), goes_there);
    if (is_told) answers_.push_back(letter_to(node));
  }
  if (begin_round(call).is_ok()) (void)team_.walk_on(answers_, letters, call.doing);
  return why;
}

ReductionsOverNodes::Told ReductionsOverNodes::told_of(const Verdict& verdict) {
  switch (verdict.finding) {
    case Finding::the_same:
      break;
    case Finding::another_reduction:
      return {verdict.said, verdict.rank, Told::What::another_reduction};
    case Finding::no_reduction:
      return {verdict.said, verdict.rank, Told::What::no_reduction};
  }
  return {};
}

// What the ranks of this node have said differently, which all other nodes are told.
ReductionsOverNodes::Verdict ReductionsOverNodes::verdict_of_rounds(const SaidOfCall& said_here) const {
  if (!rounds_->have_all_begun()) return {{}, my_rank_, Finding::no_reduction};
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) {
    if (!say_the_same_came_before(rounds_->said(member), said_here)) return {{}, my_rank_, Finding::no_reduction};
  }
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) {
    if (rounds_->said(member) != said_here)
      return {rounds_->said(member), team_.places().here[member], Finding::another_reduction};
  }
  return {{}, 0, Finding::the_same};
}

Status ReductionsOverNodes::told_by_other_nodes(const ReductionCall& call, const Verdict& verdict) {
  const RefusedReduction refused{call.doing, my_rank_, call.said};
  if (verdict.finding == Finding::another_reduction) return told_otherwise(refused, verdict.rank, verdict.said);
  Status status = no_reduction_by(refused, name_of_node(verdict.rank));
  rounds_->break_off(status);
  return status;
}

Status ReductionsOverNodes::give_up(Status why) {
  rounds_->give_up(why);
  return why;
}

// All ranks of a node leave what they bring for its first, which alone goes on; of a long one they hear from it that
// all have said the same before they do.
Status ReductionsOverNodes::run_to_root(const ReductionCall& call) {
  SaidOfCall said_here = call.said;
  say_what_came_before(said_here, team_.node().meetings());
  if (!is_short(call)) copy_reduced(rounds_->piece(my_place()), call.asked.mine, first_piece(call));
  Status status = team_.is_first_here() ? be_first(call, said_here) : leave_for_first(call, said_here);
  return status.is_ok() && !is_short(call) ? go_on_to_root(call) : std::move(status);
}

Status ReductionsOverNodes::leave_for_first(const ReductionCall& call, const SaidOfCall& said_here) {
  const bool is_short_one = is_short(call);
  const std::span<const std::byte> mine(call.asked.mine, is_short_one ? call.bytes : 0);
  const bool hears = call.gets_result || !is_short_one || by_rank_;
  if (!hears) return to_first_->leave(said_here, mine, first_place, call.doing);
  alignas(cache_line_bytes) std::array<std::byte, NodeRoundsBlock::most_slot_bytes> words;
  const std::span<std::byte> heard = std::span(words).first(sizeof(Told) + mine.size());
  bool says_first_the_same = false;
  Status status = to_first_->leave_and_hear(said_here, mine, first_place, heard, says_first_the_same, call.doing);
  if (!status.is_ok()) return status;
  Told told;
  if (says_first_the_same)
    std::memcpy(&told, heard.data(), sizeof told);
  else
    told = compare_said(*to_first_, team_.places(), said_here, first_place);
  if (told.what == Told::What::the_same && is_short_one && call.gets_result)
    copy_reduced(call.asked.result, heard.data() + sizeof told, call.bytes);
  return told_by_first(call, told);
}

// Those that wait here have said the same, and are at the root's node or bring much.
Status ReductionsOverNodes::be_first(const ReductionCall& call, const SaidOfCall& said_here) {
  if (Status status = to_first_->gather(said_here, {}, call.doing); !status.is_ok())
    return end_for_all_nodes(call, std::move(status));
  Told told = compare_here(said_here);
  const std::size_t bytes = first_piece(call);
  if (told.what == Told::What::the_same) fold_alone(call, bytes);
  Verdict verdict = verdict_of(told);
  // Who has said something else may not wait, and write its next piece.
  const std::size_t combined = told.what == Told::What::the_same ? bytes : 0;
  if (Status status = combine_first_piece(call, combined, verdict); !status.is_ok()) return give_up(std::move(status));
  if (told.what == Told::What::the_same) told = told_of(verdict);
  const bool is_heard_here = by_rank_ || !is_short(call) || (is_at(call.asked.root) && !call.gets_result);
  if (is_heard_here) {
    const std::size_t brought = is_short(call) ? bytes : 0;
    std::memcpy(letter_.get(), &told, sizeof told);
    copy_reduced(letter_.get() + sizeof told, rounds_->answer(), brought);
    to_first_->say({letter_.get(), sizeof told + brought});
  }
  to_first_->finish();
  if (told.what == Told::What::the_same && is_short(call) && call.gets_result)
    copy_reduced(call.asked.result, rounds_->answer(), bytes);
  return told_by_first(call, told);
}

// The first piece of all members here. What is folded by ranks lies where a long one's pieces do, which no member
// writes before it has heard that the call is over.
void ReductionsOverNodes::fold_alone(const ReductionCall& call, std::size_t bytes) {
  const auto part = [&](std::uint32_t member) {
    if (member == my_place()) return call.asked.mine;
    return is_short(call) ? to_first_->data(member, bytes) : static_cast<const std::byte*>(rounds_->piece(member));
  };
  if (!by_rank_) return call.fold.all(rounds_->answer(), bytes, rounds_->ranks(), part);
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member)
    copy_reduced(rounds_->piece(member), part(member), bytes);
  const auto piece = [&](std::uint32_t rank) { return rounds_->piece(team_.places().place_of(rank)); };
  for (const RankOrder::Join& join : by_rank_->joins_here())
    call.fold.one_more(piece(join.left), piece(join.right), bytes);
}

// The first with which the group ends, if any; else the first that has said something else.
ReductionsOverNodes::Told ReductionsOverNodes::compare_here(const SaidOfCall& said_here) const {
  Told first;
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) {
    const Told found = compare_said(*to_first_, team_.places(), said_here, member);
    if (found.what == Told::What::out_of_step) return found;
    if (first.what == Told::What::the_same) first = found;
  }
  return first;
}

Status ReductionsOverNodes::told_by_first(const ReductionCall& call, const Told& told) {
  const RefusedReduction refused{call.doing, my_rank_, call.said};
  switch (told.what) {
    case Told::What::the_same:
      return {};
    case Told::What::another_reduction:
      return told_otherwise(refused, told.rank, told.said);
    case Told::What::no_reduction:
      // The others here do not hear of it.
      return give_up(no_reduction_by(refused, name_of_node(told.rank)));
    case Told::What::gone_on:
      return give_up(gone_on(refused, told.rank));
    case Told::What::out_of_step:
      break;
  }
  return give_up(out_of_step(refused, told.rank));
}

// Behind the first piece of a long one, whose answer lies at the root's node.
Status ReductionsOverNodes::go_on_to_root(const ReductionCall& call) {
  rounds_->begin_agreed();
  std::size_t done = first_piece(call);
  if (done == 0) return too_scattered({call.doing, my_rank_, call.said});
  call.keep(rounds_->answer(), 0, done);
  while (done < call.bytes) {
    const std::size_t bytes = std::min(piece_bytes(call), call.bytes - done);
    copy_reduced(rounds_->piece(my_place()), call.asked.mine + done, bytes);
    if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
    if (Status status = fold_in_shares(call, bytes); !status.is_ok()) return status;
    if (team_.is_first_here()) {
      if (Status status = add_piece_at_root(call, bytes); !status.is_ok()) return give_up(std::move(status));
    }
    // What goes to others is read from the pieces by ranks, else from the answer.
    if (by_rank_ || is_at(call.asked.root)) {
      if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
    }
    call.keep(rounds_->answer(), done, bytes);
    done += bytes;
  }
  return {};
}

// Nothing is split before all know that they split the same.
Status ReductionsOverNodes::combine_first_piece(const ReductionCall& call, std::size_t bytes, Verdict& verdict) {
  if (!is_split_) return combine_at_root(call, bytes, verdict);
  Status status = combine_at_root(call, 0, verdict);
  const bool goes_on = status.is_ok() && verdict.finding == Finding::the_same && bytes != 0;
  return goes_on ? add_piece_at_root(call, bytes) : std::move(status);
}

// The first piece of all nodes, and what they have called. Few tell all others that, so that whoever waits for another
// call of theirs hears of it; of these the root alone waits, or, where much is to come, all. More tell it up a tree, to
// node 0, who tells the root.
Status ReductionsOverNodes::combine_at_root(const ReductionCall& call, std::size_t bytes, Verdict& verdict) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  ReductionLetters letters = letters_of(call, verdict, bytes, degree_);
  letters.hold(ReductionLetters::Holding::to_root, root_node);
  // By ranks a letter holds what this node's ranks are neighbours of, which is planned for an answer that all get.
  const bool all_wait = by_rank_ || !is_short(call);
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (!is_flat()) return combine_in_tree(call, letters, all_wait);
  const bool waits = all_wait || root_node == my_node_;
  const std::span<const trees::Step> steps = waits ? std::span<const trees::Step>(list_) : up();
  if (Status status = team_.walk_on(steps, letters, call.doing); !status.is_ok()) return status;
  if (all_wait && letters.are_the_same()) team_.note_all_met();
  if (by_rank_ || root_node == my_node_) letters.finish();
  return {};
}

// Who has told its parent goes on, but where all wait; and then those behind it in the tree may have gone on, too. Node
// 0 tells the root, apart or on the way down.
Status ReductionsOverNodes::combine_in_tree(const ReductionCall& call, ReductionLetters& letters, bool all_wait) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  const auto walk = [&](std::span<const trees::Step> steps, ReductionLetters::Holding holding) {
    letters.hold(holding, root_node);
    return team_.walk_on(steps, letters, call.doing);
  };
  drop_answers();
  if (Status status = walk(up(), ReductionLetters::Holding::all); !status.is_ok()) return status;
  const bool is_told_on_the_way = by_rank_ || (all_wait && parent_of(root_node) == 0U);
  if (!is_told_on_the_way) {
    if (Status status = tell_root(call, letters, root_node); !status.is_ok()) return status;
  }
  if (all_wait) {
    const ReductionLetters::Holding holding =
        is_told_on_the_way ? ReductionLetters::Holding::to_root : ReductionLetters::Holding::none;
    if (Status status = walk(down(), holding); !status.is_ok()) return status;
    if (letters.are_the_same()) team_.note_all_met();
  }
  if (by_rank_) letters.finish();
  if (letters.are_the_same()) return {};
  return answer(call, letters, my_node_ != 0 || is_told_on_the_way ? my_node_ : root_node, all_wait);
}

// By a letter of its own, where the root is not on node 0.
Status ReductionsOverNodes::tell_root(const ReductionCall& call, ReductionLetters& letters, std::uint32_t root_node) {
  if (root_node == 0 || (my_node_ != 0 && my_node_ != root_node)) return {};
  letters.hold(ReductionLetters::Holding::to_root, root_node);
  const trees::Step step = my_node_ == 0 ? letter_to(root_node) : letter_from(0);
  return team_.walk_on({&step, 1}, letters, call.doing);
}

// A further piece, of which nobody else hears anything.
Status ReductionsOverNodes::add_piece_at_root(const ReductionCall& call, std::size_t bytes) {
  const std::uint32_t root_node = team_.node_of(call.asked.root);
  Verdict verdict{{}, 0, Finding::the_same};
  if (by_halves_) return add_by_halves(call, bytes, root_node);
  ReductionLetters letters = letters_of(call, verdict, bytes, degree_);
  letters.compare_no_more();
  if (Status status = begin_round(call); !status.is_ok()) return status;
  if (by_rank_) {
    if (Status status = team_.walk_on(list_, letters, call.doing); !status.is_ok()) return status;
    team_.note_all_met();
    letters.finish();
    return {};
  }
  if (!is_flat()) {
    if (Status status = team_.walk_on(up(), letters, call.doing); !status.is_ok()) return status;
    return tell_root(call, letters, root_node);
  }
  if (root_node != my_node_) {
    const trees::Step step = letter_to(root_node);
    return team_.walk_on({&step, 1}, letters, call.doing);
  }
  if (Status status = team_.walk_on(down(), letters, call.doing); !status.is_ok()) return status;
  letters.finish();
  return {};
}

// To node 0, which tells the root.
Status ReductionsOverNodes::add_by_halves(const ReductionCall& call, std::size_t bytes, std::uint32_t root_node) {
  const auto begin = [&] { return begin_round(call); };
  const auto told_odd = [&](std::uint32_t node) {
    return no_reduction_by({call.doing, my_rank_, call.said}, name_of_node(team_.members_of(node).front()));
  };
  const SplitReduce::Piece piece{
      .fold = call.fold, .held = {rounds_->answer(), bytes}, .begin_round = begin, .odd = told_odd};
  if (Status status = by_halves_->run(team_, piece, call.doing); !status.is_ok()) return status;
  if (Status status = begin_round(call); !status.is_ok()) return status;
  Verdict verdict{{}, 0, Finding::the_same};
  ReductionLetters letters = letters_of(call, verdict, bytes, tree_degree());
  letters.compare_no_more();
  return tell_root(call, letters, root_node);
}

// Some have called something else, and may wait for what this node would tell them if it had called that: the nodes
// behind it in the tree; and of node 0 any node, if it takes itself for the root's. Who waits for nothing finds it when
// it next takes a letter from the same node.
Status ReductionsOverNodes::answer(const ReductionCall& call, ReductionLetters& letters, std::uint32_t told_apart,
                                   bool all_wait) {
  if (is_flat()) return {};
  const auto is_behind = [&](std::uint32_t node) {
    return std::any_of(up().begin(), up().end(), [&](const trees::Step& step) {
      return step.action == trees::Action::receive_combine && step.peer == node;
    });
  };
  answers_.clear();
  for (std::uint32_t node = 1; node < team_.places().nodes(); ++node) {
    const bool waits = is_behind(node) ? !all_wait : my_node_ == 0;
    if (waits && node != told_apart) answers_.push_back(letter_to(node));
  }
  return team_.walk_on(answers_, letters, call.doing);
}

// Of earlier rounds, for which this node has not waited.
void ReductionsOverNodes::drop_answers() {
  if (is_flat() || my_node_ == 0) return;
  team_.drop_letters_of(0);
  if (const auto parent = parent_of(my_node_); parent != 0U) team_.drop_letters_of(*parent);
}

std::optional<std::uint32_t> ReductionsOverNodes::parent_of(std::uint32_t node) const {
  return trees::Fnomial(team_.places().nodes(), degree_).parent(node);
}

}  // namespace farsum
