#include "collectives/reductions.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collectives/node_broadcast.hpp"
#include "collectives/reduction_refusals.hpp"
#include "cost/meeting_model.hpp"

namespace farsum {
namespace {

using Finding = NodeRoundsBlock::Finding;

std::string name_of_node(std::uint32_t first_rank) { return fmt::format("the node of rank {}", first_rank); }

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

struct GroupReductions::Call {
  const GroupReduction& asked;
  Fold fold;
  SaidOfCall said;
  const char* doing;
  bool gets_result;
  std::size_t result_bytes;
  // Of what is reduced, in which what this rank gets begins there.
  std::size_t bytes;
  std::size_t own_from;

  RefusedReduction refused(std::uint32_t my_rank) const { return {doing, my_rank, said}; }
};

// What the root has found, for those that ask before they go on.
struct GroupReductions::Answer {
  enum class Finding : std::uint32_t {
    the_same,
    another_reduction,  // by `rank`, who has said `said`
    gone_on,            // `rank` has, to a call of its own after one that is not known any more
    out_of_step,        // `rank` has made other calls before this one
  };
  SaidOfCall said;
  std::uint32_t rank = 0;
  Finding finding = Finding::the_same;
};

// What goes from node to node before the elements, of which there are none where the sender knows of ranks that have
// said different things.
struct GroupReductions::Letter {
  static constexpr std::uint64_t of_reductions = 0x736e6f6974637564;  // other collectives' letters begin otherwise

  std::uint64_t tag;
  SaidOfCall said;  // by the sender
  SaidOfCall other;
  std::uint32_t other_rank;  // who has said that, or the first rank of a node that has called no reduction
  Finding finding;
};

GroupReductions::GroupReductions(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means, Waiter& waiter)
    : team_(team),
      kernels_(means.kernels),
      waiter_(waiter),
      my_rank_(my_rank),
      size_(team.size()),
      order_(means.order),
      copies_(means.peers) {
  const GroupPlaces& places = team.places();
  if (places.is_one_node()) return;
  std::size_t most_here = places.here.size();
  for (const GroupPlaces::Node& node : places.remote) most_here = std::max(most_here, node.members.size());
  // The same on all nodes.
  const std::size_t room = (means.letter_bytes - sizeof(Letter)) / cache_line_bytes * cache_line_bytes;
  team_piece_bytes_ = std::min(NodeRoundsBlock::piece_bytes(static_cast<std::uint32_t>(most_here)), room);
  const std::uint32_t degree = degree_between_nodes(places.nodes(), means.degree);
  is_flat_ = degree == 0;
  if (order_ == ReduceOrder::ranks)
    by_rank_.emplace(places, degree, RankOrder::Limits{.piece_bytes = team_piece_bytes_, .letter_bytes = room});
  if (!team.is_first_here()) return;
  my_node_ = places.my_node();
  list_ = list_between_nodes(places.nodes(), my_node_, degree);
  if (by_rank_) by_rank_->plan(places, list_);
  letter_ = std::make_unique_for_overwrite<std::byte[]>(means.letter_bytes);
  sum_ = std::make_unique_for_overwrite<std::byte[]>(means.letter_bytes);
}

void GroupReductions::begin(std::byte* block) noexcept {
  NodeTeam& node = team_.node();
  std::byte* const rounds = block + GroupBlock::rounds_at(node.ranks());
  rounds_.emplace(rounds, node, waiter_);
  if (team_.places().is_one_node()) to_root_.emplace(rounds, node, *rounds_, waiter_);
}

Status GroupReductions::run(const GroupReduction& reduction, const char* doing) {
  const bool scatters = reduction.kind == GroupReduction::Kind::reduce_scatter_block;
  const Fold fold(kernels_, reduction.type, reduction.op, order_);
  const std::size_t result_bytes = reduction.count * fold.element_bytes();
  Call call = {
      .asked = reduction,
      .fold = fold,
      .said = said_of(reduction, order_),
      .doing = doing,
      .gets_result = reduction.kind != GroupReduction::Kind::reduce || reduction.root == my_rank_,
      .result_bytes = result_bytes,
      .bytes = scatters ? result_bytes * size_ : result_bytes,
      .own_from = scatters ? result_bytes * my_rank_ : 0,
  };
  if (size_ == 1) {
    copy_bytes(reduction.result, reduction.mine, result_bytes);
    return {};
  }
  if (!team_.places().is_one_node()) return run_on_nodes(call);
  // No meeting ends without this rank, so that all count alike before the same call.
  const bool is_reduce = reduction.kind == GroupReduction::Kind::reduce;
  say_what_came_before(call.said, is_reduce ? team_.node().meetings() : to_root_->calls());
  return run_on_one_node(call);
}

Status GroupReductions::broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  if (size_ == 1) return {};
  if (!team_.places().is_one_node()) return team_.broadcast(buffer, root, doing);
  const NodeBroadcast::Means means{team_.node(), *rounds_, *to_root_, copies_, waiter_, team_.places().here};
  return NodeBroadcast(means, buffer, root, doing).run();
}

Status GroupReductions::run_on_one_node(const Call& call) {
  const GroupReduction::Kind kind = call.asked.kind;
  const bool is_short = call.bytes <= rounds_->slot_bytes();
  if (kind == GroupReduction::Kind::reduce) return is_short ? run_to_root(call) : run_long(call);
  return is_short ? run_short(call) : run_long(call);
}

// The others leave their parts for the root, which alone waits.
Status GroupReductions::run_to_root(const Call& call) {
  const std::span<const std::byte> mine(call.asked.mine, call.bytes);
  if (!call.gets_result) return to_root_->leave(call.said, mine, call.asked.root, call.doing);
  // What lies where the result goes is read after it is written.
  const bool is_in_place = call.asked.result == call.asked.mine;
  const std::span<const std::byte> to_slot = is_in_place ? mine : std::span<const std::byte>();
  if (Status status = to_root_->gather(call.said, to_slot, call.doing); !status.is_ok()) return status;
  const Answer answer = compare_at_root(call);
  if (answer.finding == Answer::Finding::the_same)
    call.fold.all(call.asked.result, call.bytes, size_, [&](std::uint32_t member) {
      return member == my_rank_ && !is_in_place ? call.asked.mine : to_root_->data(member, call.bytes);
    });
  to_root_->finish();
  return told_by_root(call, answer);
}

// Before a long one, in which all wait for all: only if all have said the same. All have written their first pieces.
Status GroupReductions::agree(const Call& call) {
  return call.gets_result ? agree_as_root(call) : agree_with_root(call);
}

Status GroupReductions::agree_with_root(const Call& call) {
  Answer answer;
  bool says_root_the_same = false;
  const auto heard = std::as_writable_bytes(std::span(&answer, 1));
  Status status = to_root_->leave_and_hear(call.said, call.asked.root, heard, says_root_the_same, call.doing);
  if (!status.is_ok()) return status;
  if (!says_root_the_same) answer = compare_with(call, call.asked.root);
  if (answer.finding == Answer::Finding::the_same) rounds_->begin_agreed();
  return told_by_root(call, answer);
}

Status GroupReductions::agree_as_root(const Call& call) {
  if (Status status = to_root_->gather(call.said, {}, call.doing); !status.is_ok()) return status;
  const Answer answer = compare_at_root(call);
  to_root_->say(std::as_bytes(std::span(&answer, 1)));
  to_root_->finish();
  if (answer.finding == Answer::Finding::the_same) rounds_->begin_agreed();
  return told_by_root(call, answer);
}

// The first with which the group ends, if any; else the first that has said something else.
GroupReductions::Answer GroupReductions::compare_at_root(const Call& call) const {
  Answer first;
  for (std::uint32_t member = 0; member < size_; ++member) {
    const Answer answer = compare_with(call, member);
    if (answer.finding == Answer::Finding::out_of_step || waits_in_vain(answer)) return answer;
    if (first.finding == Answer::Finding::the_same) first = answer;
  }
  return first;
}

// Who has gone on is found to have made another call, which is not known any more.
GroupReductions::Answer GroupReductions::compare_with(const Call& call, std::uint32_t member) const {
  const std::optional<SaidOfCall> said = to_root_->said(member);
  if (said == call.said) return {};
  if (!said) return {{}, member, Answer::Finding::gone_on};
  const bool is_in_step = say_the_same_came_before(*said, call.said);
  return {*said, member, is_in_step ? Answer::Finding::another_reduction : Answer::Finding::out_of_step};
}

// Whether it is of the root of a broadcast that waits for all.
bool GroupReductions::waits_in_vain(const Answer& answer) const {
  return answer.finding == Answer::Finding::another_reduction && is_broadcast(answer.said) &&
         root_of(answer.said) == answer.rank && answer.said.count > rounds_->slot_bytes();
}

Status GroupReductions::told_by_root(const Call& call, const Answer& answer) {
  switch (answer.finding) {
    case Answer::Finding::the_same:
      return {};
    case Answer::Finding::another_reduction: {
      Status status = told_otherwise(call.refused(my_rank_), answer.rank, answer.said);
      return waits_in_vain(answer) ? give_up(for_good(status)) : std::move(status);
    }
    case Answer::Finding::gone_on:
      return gone_on(call.refused(my_rank_), answer.rank);
    case Answer::Finding::out_of_step:
      break;
  }
  return give_up(out_of_step(call.refused(my_rank_), answer.rank));
}

// Who is behind would take what others leave now for what belongs to an older call, and who waits for all would wait
// for ever.
Status GroupReductions::give_up(Status why) {
  rounds_->give_up(why);
  return why;
}

// All is said in one step. What all get the last to come folds for them, where there is one; else each who gets
// something folds it.
Status GroupReductions::run_short(const Call& call) {
  const bool is_for_all = call.asked.kind == GroupReduction::Kind::allreduce;
  const auto answer_all = [&] {
    if (is_for_all && have_all_said_the_same(call)) fold_begun(call, rounds_->answer());
  };
  const std::span<const std::byte> mine(call.asked.mine, call.bytes);
  if (Status status = rounds_->begin(call.said, mine, answer_all, call.doing); !status.is_ok()) return status;
  if (!have_all_said_the_same(call)) return who_said_otherwise(call);
  if (!call.gets_result) return {};
  if (is_for_all && rounds_->has_a_last())
    copy_bytes(call.asked.result, rounds_->answer(), call.result_bytes);
  else
    fold_begun(call, call.asked.result);
  return {};
}

// What the members began the call with, as far as this rank gets it.
void GroupReductions::fold_begun(const Call& call, std::byte* into) const {
  call.fold.all(into, call.result_bytes, rounds_->ranks(),
                [&](std::uint32_t member) { return rounds_->data(member) + call.own_from; });
}

// By copies of the kernel's where it is worth that and all can, which they tell one another; else in pieces. A share is
// folded from the left.
Status GroupReductions::run_long(const Call& call) {
  if (order_ == ReduceOrder::ranks || !CopiedShares::is_for(size_, call.bytes)) return run_in_pieces(call, false);
  CopiedCall copied(*rounds_, copies_, waiter_, team_.places().here, my_place(), call.doing);
  tell_of_memory(call, copied);
  if (Status status = begin_long(call); !status.is_ok()) return status;
  if (copied.can_all()) return run_by_copies(call, copied);
  // Nobody writes its piece before all have read what was told in it.
  if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
  return run_in_pieces(call, true);
}

void GroupReductions::tell_of_memory(const Call& call, CopiedCall& copied) const {
  const bool scatters = call.asked.kind == GroupReduction::Kind::reduce_scatter_block;
  // Others read blocks of it where this rank would write its own.
  if (scatters && call.asked.result == call.asked.mine) return copied.tell_that_it_cannot();
  const std::span<std::byte> result =
      call.gets_result ? std::span(call.asked.result, call.result_bytes) : std::span<std::byte>();
  copied.tell({call.asked.mine, call.bytes}, result);
}

// Where all get all each keeps its share, and takes the others' from them when they have it.
Status GroupReductions::run_by_copies(const Call& call, CopiedCall& copied) {
  const bool is_for_all = call.asked.kind == GroupReduction::Kind::allreduce;
  const bool scatters = call.asked.kind == GroupReduction::Kind::reduce_scatter_block;
  const auto share_of = [&](std::uint32_t member) -> CopiedShares::Share {
    if (scatters) return {.from = call.own_from, .bytes = call.result_bytes, .to = 0};
    const std::size_t each = round_up((call.bytes + size_ - 1) / size_, cache_line_bytes);
    const std::size_t from = std::min(member * each, call.bytes);
    return {.from = from, .bytes = std::min(each, call.bytes - from), .to = from};
  };
  const bool is_for_others = call.asked.kind == GroupReduction::Kind::reduce;
  std::optional<CopiedShares::Missed> missed =
      copies_.fold(call.fold, share_of(my_place()), my_place(), copied.members(), is_for_others);
  if (Status status = copied.end(missed, 0); !status.is_ok() || !is_for_all) return status;
  for (std::uint32_t member = 0; member < size_ && !missed; ++member)
    if (member != my_place()) missed = copies_.take(share_of(member), member, my_place(), copied.members());
  return copied.end(missed, 1);
}

// A reduce begins with what all leave for its root, who compares it.
Status GroupReductions::begin_long(const Call& call) {
  if (call.asked.kind == GroupReduction::Kind::reduce) return agree(call);
  if (Status status = begin_piece(call, 0); !status.is_ok()) return status;
  return have_all_said_the_same(call) ? Status() : who_said_otherwise(call);
}

Status GroupReductions::run_in_pieces(const Call& call, bool has_begun) {
  const bool has_a_line_for_each = rounds_->piece_bytes() >= size_ * cache_line_bytes;
  const bool scatters = call.asked.kind == GroupReduction::Kind::reduce_scatter_block && has_a_line_for_each;
  return scatters ? run_scattering(call, has_begun) : run_in_shares(call, has_begun);
}

// In pieces, of which each rank folds a share.
Status GroupReductions::run_in_shares(const Call& call, bool has_begun) {
  for (std::size_t done = 0; done < call.bytes; done += rounds_->piece_bytes()) {
    const std::size_t bytes = std::min(rounds_->piece_bytes(), call.bytes - done);
    copy_bytes(rounds_->piece(my_place()), call.asked.mine + done, bytes);
    const bool begins = done == 0 && !has_begun;
    if (Status status = begins ? begin_long(call) : rounds_->next_step(call.doing); !status.is_ok()) return status;
    if (Status status = fold_in_shares(call, bytes); !status.is_ok()) return status;
    keep(call, done, bytes);
  }
  return {};
}

// In pieces that have a part of each rank's block, of whole lines, which that rank folds.
Status GroupReductions::run_scattering(const Call& call, bool has_begun) {
  const std::size_t most = rounds_->piece_bytes() / size_ / cache_line_bytes * cache_line_bytes;
  for (std::size_t done = 0; done < call.result_bytes; done += most) {
    const std::size_t bytes = std::min(most, call.result_bytes - done);
    for (std::uint32_t rank = 0; rank < size_; ++rank)
      copy_bytes(rounds_->piece(my_place()) + rank * bytes, call.asked.mine + rank * call.result_bytes + done, bytes);
    const bool begins = done == 0 && !has_begun;
    if (Status status = begins ? begin_long(call) : rounds_->next_step(call.doing); !status.is_ok()) return status;
    call.fold.all(call.asked.result + done, bytes, size_,
                  [&](std::uint32_t member) { return rounds_->piece(member) + my_rank_ * bytes; });
    // Nobody writes its next piece before.
    if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
  }
  return {};
}

// Each node folds a piece, its first rank combines it with those of the others, and tells the rest. Where that fails
// the others would wait for ever, so they are told.
Status GroupReductions::run_on_nodes(const Call& call) {
  const std::size_t most = piece_between_nodes(call);
  std::size_t done = 0;
  do {
    const std::size_t bytes = std::min(most, call.bytes - done);
    copy_bytes(rounds_->piece(my_place()), call.asked.mine + done, bytes);
    if (Status status = begin_piece(call, done); !status.is_ok()) return status;
    const bool differs_here = done == 0 && !have_all_said_the_same(call);
    if (!differs_here) {
      if (Status status = fold_in_shares(call, bytes); !status.is_ok()) return status;
    }
    if (team_.is_first_here()) {
      if (Status status = combine_nodes(call, done, differs_here ? 0 : bytes); !status.is_ok()) {
        rounds_->give_up(status);
        return status;
      }
    }
    if (differs_here) return who_said_otherwise(call);
    if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
    if (done == 0 && rounds_->verdict().finding != Finding::the_same) return told_by_other_nodes(call);
    if (bytes == 0 && call.bytes != 0) return too_scattered(call.refused(my_rank_));
    keep(call, done, bytes);
    done += bytes;
  } while (done < call.bytes);
  return {};
}

// 0: none goes, and all nodes tell each other only what they have called.
std::size_t GroupReductions::piece_between_nodes(const Call& call) const {
  return by_rank_ ? by_rank_->piece_bytes(call.fold.element_bytes()) : team_piece_bytes_;
}

// All have written the piece that begins there.
Status GroupReductions::begin_piece(const Call& call, std::size_t done) {
  const auto nothing = [] {};
  return done == 0 ? rounds_->begin(call.said, {}, nothing, call.doing) : rounds_->next_step(call.doing);
}

// So much of all pieces becomes the answer; or, by ranks of several nodes, of each aligned block of ranks what lies
// where the first one's piece was. No line of it is written by two.
Status GroupReductions::fold_in_shares(const Call& call, std::size_t bytes) {
  const std::size_t share = round_up((bytes + rounds_->ranks() - 1) / rounds_->ranks(), cache_line_bytes);
  const std::size_t from = std::min(my_place() * share, bytes);
  const std::size_t own_bytes = std::min(share, bytes - from);
  if (by_rank_) {
    const auto part = [&](std::uint32_t rank) { return rounds_->piece(team_.places().place_of(rank)) + from; };
    for (const RankOrder::Join& join : by_rank_->joins_here())
      call.fold.one_more(part(join.left), part(join.right), own_bytes);
  } else {
    call.fold.all(rounds_->answer() + from, own_bytes, rounds_->ranks(),
                  [&](std::uint32_t member) { return rounds_->piece(member) + from; });
  }
  return rounds_->next_step(call.doing);
}

// What of the answer, which lies there in the whole, this rank gets.
void GroupReductions::keep(const Call& call, std::size_t done, std::size_t bytes) const {
  if (!call.gets_result) return;
  const std::size_t from = std::max(done, call.own_from);
  const std::size_t until = std::min(done + bytes, call.own_from + call.result_bytes);
  if (from < until)
    copy_bytes(call.asked.result + (from - call.own_from), rounds_->answer() + (from - done), until - from);
}

std::uint32_t GroupReductions::degree_between_nodes(std::uint32_t nodes, std::uint32_t wanted) {
  if (wanted != 0) return wanted;
  return cost::meet_at_once(nodes) ? 0 : 2;
}

std::vector<trees::Step> GroupReductions::list_between_nodes(std::uint32_t nodes, std::uint32_t mine,
                                                             std::uint32_t degree) {
  if (degree != 0)
    return trees::steps_of({.kind = trees::Kind::allreduce, .nodes = nodes, .elements = 1, .degree = degree}, mine);
  std::vector<trees::Step> list;
  for (const auto action : {trees::Action::send, trees::Action::receive_copy}) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (node != mine) list.push_back({action, false, node, 0, 1});
    }
  }
  return list;
}

// What nodes have of a piece, and what their ranks have said. The part of this node, which becomes that of all, is the
// rounds' answer; or, by ranks, a part for each aligned block of them.
class GroupReductions::Parts final : public LetterContent {
 public:
  Parts(GroupReductions& reductions, const Call& call, std::size_t done, std::size_t bytes)
      : reductions_(reductions), call_(call), done_(done), bytes_(bytes) {
    const auto part = [&](std::uint32_t rank) {
      return reductions_.rounds_->piece(reductions_.team_.places().place_of(rank));
    };
    if (by_rank()) by_rank()->begin(bytes, part);
  }

  std::span<const std::byte> held(const trees::Step& step) override {
    std::byte* const into = reductions_.letter_.get();
    const Letter letter = reductions_.own_letter(call_);
    std::memcpy(into, &letter, sizeof letter);
    if (letter.finding != Finding::the_same) return {into, sizeof letter};
    if (by_rank())
      by_rank()->pack(number_of(step), into + sizeof letter);
    else
      copy_bytes(into + sizeof letter, answer(), bytes_);
    return {into, sizeof letter + bytes_with(step)};
  }

  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    const std::uint32_t sender = reductions_.team_.places().node(step.peer, reductions_.my_node_).members.front();
    if (done_ == 0) reductions_.compare_letter(call_, sender, letter);
    if (finding() != Finding::the_same || bytes_ == 0) return {};
    if (letter.size() != sizeof(Letter) + bytes_with(step))
      return no_reduction_by(call_.refused(reductions_.my_rank_), name_of_node(sender));
    const std::byte* const theirs = letter.data() + sizeof(Letter);
    if (by_rank()) {
      by_rank()->take(number_of(step), theirs, call_.fold);
    } else if (reductions_.is_flat_) {
      if (step.peer > reductions_.my_node_) add_own();
      add(theirs);
    } else if (step.action == trees::Action::receive_copy) {
      copy_bytes(answer(), theirs, bytes_);
    } else {
      // All nodes of a subtree come behind its parent.
      call_.fold.one_more(answer(), theirs, bytes_);
    }
    return {};
  }

  // Where all have said the same, once all has been taken.
  void finish() {
    if (finding() != Finding::the_same) return;
    if (by_rank()) return copy_bytes(answer(), by_rank()->answer(), bytes_);
    if (!reductions_.is_flat_) return;
    add_own();
    copy_bytes(answer(), sum(), bytes_);
  }

 private:
  std::byte* answer() const { return reductions_.rounds_->answer(); }
  std::byte* sum() const { return reductions_.sum_.get(); }
  Finding finding() const { return reductions_.rounds_->verdict().finding; }
  RankOrder* by_rank() const { return reductions_.by_rank_ ? &*reductions_.by_rank_ : nullptr; }
  std::size_t number_of(const trees::Step& step) const {
    return static_cast<std::size_t>(&step - reductions_.list_.data());
  }
  // Of elements, in the letter of a step.
  std::size_t bytes_with(const trees::Step& step) const {
    return by_rank() ? by_rank()->letter_bytes(number_of(step)) : bytes_;
  }
  void add_own() {
    if (!std::exchange(has_own_, true)) add(answer());
  }
  void add(const std::byte* part) {
    if (!std::exchange(has_first_, true))
      copy_bytes(sum(), part, bytes_);
    else
      call_.fold.one_more(sum(), part, bytes_);
  }

  GroupReductions& reductions_;
  const Call& call_;
  std::size_t done_;
  std::size_t bytes_;
  bool has_first_ = false;
  bool has_own_ = false;
};

// The answer of this node becomes that of all. By the first rank of each node.
Status GroupReductions::combine_nodes(const Call& call, std::size_t done, std::size_t bytes) {
  if (done == 0) rounds_->verdict().finding = Finding::the_same;
  Parts parts(*this, call, done, bytes);
  if (Status status = team_.walk_together(list_, parts, call.doing); !status.is_ok()) return status;
  parts.finish();
  return {};
}

// What is known on this node so far, of its own ranks before those of others.
GroupReductions::Letter GroupReductions::own_letter(const Call& call) const {
  const NodeRoundsBlock::Verdict& verdict = rounds_->verdict();
  Letter letter{.tag = Letter::of_reductions,
                .said = call.said,
                .other = verdict.said,
                .other_rank = verdict.rank,
                .finding = verdict.finding};
  if (!rounds_->have_all_begun()) {
    letter.other_rank = my_rank_;
    letter.finding = Finding::no_reduction;
    return letter;
  }
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) {
    if (rounds_->said(member) == call.said) continue;
    letter.other = rounds_->said(member);
    letter.other_rank = team_.places().here[member];
    letter.finding = Finding::another_reduction;
    break;
  }
  return letter;
}

// Keeps for this node's ranks the first of other nodes that has called something else.
void GroupReductions::compare_letter(const Call& call, std::uint32_t first_of_sender,
                                     std::span<const std::byte> theirs) {
  NodeRoundsBlock::Verdict& verdict = rounds_->verdict();
  if (verdict.finding != Finding::the_same) return;
  Letter letter{};
  if (theirs.size() >= sizeof letter) std::memcpy(&letter, theirs.data(), sizeof letter);
  if (letter.tag != Letter::of_reductions || !makes_sense(letter.said))
    verdict = {{}, first_of_sender, Finding::no_reduction};
  else if (letter.finding == Finding::no_reduction)
    verdict = {{}, letter.other_rank, Finding::no_reduction};
  else if (letter.said != call.said)
    verdict = {letter.said, first_of_sender, Finding::another_reduction};
  else if (letter.finding != Finding::the_same)
    verdict = {letter.other, letter.other_rank, Finding::another_reduction};
}

Status GroupReductions::told_by_other_nodes(const Call& call) {
  const NodeRoundsBlock::Verdict& verdict = rounds_->verdict();
  if (verdict.finding == Finding::another_reduction)
    return told_otherwise(call.refused(my_rank_), verdict.rank, verdict.said);
  Status status = no_reduction_by(call.refused(my_rank_), name_of_node(verdict.rank));
  rounds_->break_off(status);
  return status;
}

bool GroupReductions::have_all_said_the_same(const Call& call) const {
  // Who has not may be about to write its line.
  if (!rounds_->have_all_begun()) return false;
  bool have = true;
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) have = rounds_->said(member) == call.said && have;
  return have;
}

Status GroupReductions::who_said_otherwise(const Call& call) {
  if (!rounds_->have_all_begun()) {
    const std::optional<std::uint32_t> stranger = rounds_->stranger();
    const std::string who =
        stranger ? fmt::format("rank {}", team_.places().here[*stranger]) : "another rank of this node";
    Status status = no_reduction_by(call.refused(my_rank_), who);
    rounds_->give_up(status);
    return status;
  }
  for (std::uint32_t member = 0; member < rounds_->ranks(); ++member) {
    if (!say_the_same_came_before(rounds_->said(member), call.said))
      return give_up(out_of_step(call.refused(my_rank_), team_.places().here[member]));
  }
  std::uint32_t member = 0;
  while (rounds_->said(member) == call.said) ++member;
  return told_otherwise(call.refused(my_rank_), team_.places().here[member], rounds_->said(member));
}

}  // namespace farsum
