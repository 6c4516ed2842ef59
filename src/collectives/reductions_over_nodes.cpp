#include "collectives/reductions_over_nodes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "collectives/shares.hpp"

namespace farsum {
namespace {

using Finding = NodeRoundsBlock::Finding;

// Of the members on a node, the one that speaks for it.
constexpr std::uint32_t first_place = 0;

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
  const std::uint32_t degree = ReductionLists::degree_between(places.nodes(), means.degree);
  if (means.order == ReduceOrder::ranks)
    by_rank_.emplace(places, degree, RankOrder::Limits{.piece_bytes = team_piece_bytes_, .letter_bytes = room});
  is_split_ = !by_rank_ && SplitReduce::parts(places.nodes(), means.splits) > 1;
  if (!team.is_first_here()) return;
  between_nodes_.emplace(ReductionBetweenNodes::Parts{.team = team,
                                                      .my_rank = my_rank,
                                                      .degree = degree,
                                                      .letter_bytes = means.letter_bytes,
                                                      .piece_bytes = team_piece_bytes_,
                                                      .splits = is_split_ ? means.splits : 0,
                                                      .rule = by_rank_ ? nullptr : means.pieces,
                                                      .by_rank = by_rank_ ? &*by_rank_ : nullptr});
}

void ReductionsOverNodes::begin(NodeRounds& rounds, RootedRounds& to_first) noexcept {
  rounds_ = &rounds;
  to_first_ = &to_first;
  if (between_nodes_) between_nodes_->begin(rounds);
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
      if (done == 0) rounds_->verdict() = verdict_of_rounds(said_here);
      const std::size_t combined = differs_here ? 0 : bytes;
      if (Status status = between_nodes_->combine_for_all(call, {.done = done, .bytes = combined}); !status.is_ok())
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

// The others would wait for what this node tells them.
Status ReductionsOverNodes::end_for_all_nodes(const ReductionCall& call, Status why) {
  if (why.code() == Code::argument) between_nodes_->tell_of_the_end(call);
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
  const ReductionBetweenNodes::FirstPiece piece{.bytes = combined, .all_wait = !is_short(call)};
  if (Status status = between_nodes_->combine_first_at_root(call, piece, verdict); !status.is_ok())
    return give_up(std::move(status));
  if (told.what == Told::What::the_same) told = told_of(verdict);
  const bool is_heard_here = by_rank_ || !is_short(call) || (is_at(call.asked.root) && !call.gets_result);
  if (is_heard_here) {
    const std::size_t brought = is_short(call) ? bytes : 0;
    alignas(cache_line_bytes) std::array<std::byte, NodeRoundsBlock::most_slot_bytes> words;
    std::memcpy(words.data(), &told, sizeof told);
    copy_reduced(words.data() + sizeof told, rounds_->answer(), brought);
    to_first_->say(std::span(words).first(sizeof told + brought));
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
      if (Status status = between_nodes_->add_at_root(call, bytes); !status.is_ok()) return give_up(std::move(status));
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

}  // namespace farsum
