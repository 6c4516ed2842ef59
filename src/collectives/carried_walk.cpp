#include "collectives/carried_walk.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/units.hpp"
#include "collectives/reduction_lists.hpp"
#include "cost/meeting_model.hpp"

namespace farsum {
namespace {

trees::Shape tree_from(std::uint32_t nodes, std::uint32_t root) {
  return {.kind = trees::Kind::broadcast,
          .nodes = nodes,
          .root = root,
          .elements = 1,
          .degree = cost::meeting_degree(nodes)};
}

}  // namespace

// What all letters of the first list begin with.
struct CarriedWalk::Head {
  static constexpr std::uint64_t of_carried_calls = 0x6465697272616321;

  std::uint64_t tag;
  SaidOfCall said;       // by the node's first rank
  CarriedFinding found;  // what it knows of others
};

const std::size_t CarriedWalk::room_behind_head = TeamPost::most_bytes - sizeof(Head);

// Of whole lines, for elements.
std::size_t CarriedWalk::lines_behind_head() { return room_behind_head / cache_line_bytes * cache_line_bytes; }

CarriedLists::CarriedLists(const GroupTeam& team, const ops::KernelSet& kernels, std::uint32_t degree,
                           ReduceOrder order)
    : team_(team),
      kernels_(kernels),
      nodes_(team.places().nodes()),
      my_node_(team.places().my_node()),
      are_few_(cost::meet_at_once(nodes_)),
      degree_(ReductionLists::degree_between(nodes_, degree)),
      order_(order),
      reducing_(ReductionLists::list_of(nodes_, my_node_, degree_)),
      most_gathered_(team.most_members_of_a_letter()) {
  if (!are_few_) return;
  telling_all_ = ReductionLists::list_of(nodes_, my_node_, 0);
  most_gathered_ = 0;
  for (std::uint32_t node = 0; node < nodes_; ++node)
    most_gathered_ = std::max(most_gathered_, members_of(node).size());
}

CarriedWalk::CarriedWalk(const CarriedLists& lists, TeamPost& post, std::uint64_t team)
    : lists_(lists),
      post_(post),
      team_(team),
      letter_(std::make_unique_for_overwrite<std::byte[]>(TeamPost::most_bytes)),
      sum_(std::make_unique_for_overwrite<std::byte[]>(TeamPost::most_bytes)) {
  if (lists.most_gathered() > room_behind_head) {
    std::fprintf(stderr, "farsum: internal error: a letter of an allgather is about more members than it has bytes\n");
    std::abort();
  }
  if (lists.order() == ReduceOrder::ranks) {
    const RankOrder::Limits limits{.piece_bytes = lines_behind_head(), .letter_bytes = lines_behind_head()};
    by_rank_.emplace(lists.places(), lists.degree(), limits);
    by_rank_->plan(lists.places(), lists.reducing());
  }
  broadcast_.reserve(trees::steps_of(tree_from(lists.nodes(), lists.my_node()), lists.my_node()).size());
}

void CarriedWalk::begin(const SaidOfCall& said, std::uint32_t my_rank, std::uint32_t size, std::byte* answer,
                        CarriedFinding& found, std::span<const std::byte* const> parts) {
  said_ = said;
  call_ = call_in(said).value_or(CarriedCall{});
  my_rank_ = my_rank;
  size_ = size;
  answer_ = answer;
  found_ = &found;
  parts_ = parts;
  total_ = call_.kind == CarriedCall::Kind::allgather ? call_.bytes() : call_.answer_bytes(size);
  done_ = 0;
  pieces_since_meeting_ = 0;
  if (call_.kind == CarriedCall::Kind::broadcast) {
    broadcast_.clear();
    trees::append_steps_of_broadcast(broadcast_, tree_from(lists_.nodes(), lists_.node_of(call_.root)),
                                     lists_.my_node());
  }
  enter(Stage::agreeing);
}

// A list begins, of which each letter is of the same round.
void CarriedWalk::enter(Stage stage) {
  stage_ = stage;
  ++round_;
  at_ = 0;
  packed_ = nullptr;
  has_first_ = has_own_ = false;
  piece_ = brings_data() ? std::min(piece_bytes(), total_ - done_) : 0;
  if (call_.reduces_by_ranks() && are_the_same()) begin_by_ranks();
}

// Of a call that its own ranks have found to differ no part is looked at.
void CarriedWalk::begin_by_ranks() {
  by_rank_->begin(piece_, [&](std::uint32_t rank) { return parts_[lists_.places().place_of(rank)] + done_; });
}

std::size_t CarriedWalk::piece_bytes() const {
  if (call_.kind == CarriedCall::Kind::allgather) return lists_.gathered_piece(room_behind_head);
  return call_.reduces_by_ranks() ? by_rank_->piece_bytes(ops::size_of(call_.type)) : lines_behind_head();
}

std::span<const trees::Step> CarriedWalk::list() const {
  if (stage_ != Stage::carrying) return lists_.agreeing();
  if (call_.kind == CarriedCall::Kind::broadcast) return broadcast_;
  return call_.kind == CarriedCall::Kind::allgather ? lists_.gathering() : lists_.reducing();
}

bool CarriedWalk::go_on() {
  has_refused_ = false;
  while (stage_ != Stage::over) {
    if (!trees::advance(list(), at_, *this)) {
      if (!post_.has_failed()) return false;
      find(CarriedFinding::What::cut_off, my_rank_);
      stage_ = Stage::over;
      break;
    }
    end_list();
  }
  return true;
}

void CarriedWalk::find(CarriedFinding::What what, std::uint32_t rank) {
  if (are_the_same()) *found_ = {rank, what, {}, {}};
}

bool CarriedWalk::send(const trees::Step& step) {
  if (packed_ != &step) {
    packed_ = &step;
    letter_bytes_ = held(step).size();
    sent_ = 0;
  }
  const Rank to = lists_.places().node(step.peer, lists_.my_node()).first;
  const bool has_left = post_.try_send(to, team_, round_, {letter_.get(), letter_bytes_}, sent_);
  has_sent_ |= has_left;
  has_refused_ = !has_left;
  return has_left;
}

bool CarriedWalk::take(const trees::Step& step) {
  const Rank from = lists_.places().node(step.peer, lists_.my_node()).first;
  return post_.take(from, team_, round_, [&](std::span<const std::byte> letter) { use(step, letter); });
}

std::span<const std::byte> CarriedWalk::held(const trees::Step& step) {
  std::size_t bytes = 0;
  if (stage_ == Stage::agreeing) {
    const Head head{Head::of_carried_calls, said_, *found_};
    std::memcpy(letter_.get(), &head, sizeof head);
    bytes = sizeof head;
  }
  if (brings_data() && are_the_same()) bytes += pack(step, letter_.get() + bytes);
  return {letter_.get(), bytes};
}

void CarriedWalk::use(const trees::Step& step, std::span<const std::byte> letter) {
  if (stage_ == Stage::agreeing) {
    Head head{};
    if (letter.size() < sizeof head) return find(CarriedFinding::What::garbled, speaker_of(step.peer));
    std::memcpy(&head, letter.data(), sizeof head);
    compare(step, head);
    letter = letter.subspan(sizeof head);
  }
  if (!are_the_same()) return;
  if (letter.size() != bytes_from(step)) return find(CarriedFinding::What::garbled, speaker_of(step.peer));
  if (brings_data()) take_piece(step, letter.data());
}

// Keeps the first of others that has called something else.
void CarriedWalk::compare(const trees::Step& step, const Head& theirs) {
  if (!are_the_same()) return;
  if (theirs.tag != Head::of_carried_calls || !call_in(theirs.said))
    find(CarriedFinding::What::garbled, speaker_of(step.peer));
  else if (theirs.said != said_)
    *found_ = {speaker_of(step.peer), CarriedFinding::What::another_call, theirs.said, said_, my_rank_};
  else if (theirs.found.what != CarriedFinding::What::the_same)
    *found_ = theirs.found;
}

// Of the current piece, what the letter of that step holds.
std::size_t CarriedWalk::pack(const trees::Step& step, std::byte* into) const {
  switch (call_.kind) {
    case CarriedCall::Kind::barrier:
      return 0;
    case CarriedCall::Kind::broadcast:
      if (stage_ == Stage::agreeing && !is_root_node()) return 0;
      break;
    case CarriedCall::Kind::allgather: {
      std::size_t packed = 0;
      const std::uint64_t first = lists_.are_few() ? lists_.my_node() : step.first;
      const std::uint64_t nodes = lists_.are_few() ? 1 : step.count;
      for (std::uint64_t i = 0; i < nodes; ++i) {
        for (const std::uint32_t member : lists_.members_of(static_cast<std::uint32_t>((first + i) % lists_.nodes()))) {
          copy_carried(into + packed, answer_ + member * total_ + done_, piece_);
          packed += piece_;
        }
      }
      return packed;
    }
    case CarriedCall::Kind::allreduce:
    case CarriedCall::Kind::reduce:
    case CarriedCall::Kind::reduce_scatter_block:
      break;
  }
  if (call_.reduces_by_ranks()) {
    by_rank_->pack(number_of(step), into);
    return by_rank_->letter_bytes(number_of(step));
  }
  copy_carried(into, answer_ + done_, piece_);
  return piece_;
}

// What such a letter of its peer holds.
std::size_t CarriedWalk::bytes_from(const trees::Step& step) const {
  if (!brings_data() || call_.kind == CarriedCall::Kind::barrier) return 0;
  if (call_.kind == CarriedCall::Kind::broadcast)
    return stage_ == Stage::carrying || step.peer == lists_.node_of(call_.root) ? piece_ : 0;
  if (call_.reduces_by_ranks()) return by_rank_->letter_bytes(number_of(step));
  if (call_.kind != CarriedCall::Kind::allgather) return piece_;
  if (lists_.are_few()) return lists_.members_of(step.peer).size() * piece_;
  std::size_t members = 0;
  for (std::uint64_t i = 0; i < step.count; ++i)
    members += lists_.members_of(static_cast<std::uint32_t>((step.first + i) % lists_.nodes())).size();
  return members * piece_;
}

void CarriedWalk::take_piece(const trees::Step& step, const std::byte* from) {
  switch (call_.kind) {
    case CarriedCall::Kind::barrier:
      return;
    case CarriedCall::Kind::broadcast:
      return copy_carried(answer_ + done_, from, bytes_from(step));
    case CarriedCall::Kind::allgather: {
      const std::uint64_t first = lists_.are_few() ? step.peer : step.first;
      const std::uint64_t nodes = lists_.are_few() ? 1 : step.count;
      for (std::uint64_t i = 0; i < nodes; ++i) {
        for (const std::uint32_t member : lists_.members_of(static_cast<std::uint32_t>((first + i) % lists_.nodes()))) {
          copy_carried(answer_ + member * total_ + done_, from, piece_);
          from += piece_;
        }
      }
      return;
    }
    case CarriedCall::Kind::allreduce:
    case CarriedCall::Kind::reduce:
    case CarriedCall::Kind::reduce_scatter_block:
      break;
  }
  if (call_.reduces_by_ranks()) {
    by_rank_->take(number_of(step), from, Fold(lists_.kernels(), call_.type, call_.op));
  } else if (lists_.reductions_are_flat()) {
    if (step.peer > lists_.my_node()) add_own();
    add(from);
  } else if (step.action == trees::Action::receive_copy) {
    copy_carried(answer_ + done_, from, piece_);
  } else if (piece_ != 0) {
    Fold(lists_.kernels(), call_.type, call_.op).one_more(answer_ + done_, from, piece_);
  }
}

// Few nodes are folded from the lowest on.
void CarriedWalk::add(const std::byte* part) {
  if (piece_ == 0) return;
  if (!std::exchange(has_first_, true))
    copy_carried(sum_.get(), part, piece_);
  else
    Fold(lists_.kernels(), call_.type, call_.op).one_more(sum_.get(), part, piece_);
}

void CarriedWalk::add_own() {
  if (!std::exchange(has_own_, true)) add(answer_ + done_);
}

void CarriedWalk::end_list() {
  if (!are_the_same()) {
    // All know it by the end of the first list; what is garbled later, no list can mend.
    stage_ = Stage::over;
    return;
  }
  if (has_no_room()) {
    // All nodes see that by themselves.
    find(CarriedFinding::What::too_scattered, my_rank_);
    stage_ = Stage::over;
    return;
  }
  if (brings_data()) {
    if (call_.reduces_by_ranks()) {
      copy_carried(answer_ + done_, by_rank_->answer(), piece_);
    } else if (folds_at_once()) {
      add_own();
      copy_carried(answer_ + done_, sum_.get(), piece_);
    }
    done_ += piece_;
    ++pieces_since_meeting_;
  }
  if (stage_ == Stage::meeting) pieces_since_meeting_ = 0;
  next_piece();
}

// A root's node is at once done with a piece, so all meet now and then, lest it gets too far ahead.
void CarriedWalk::next_piece() {
  if (done_ == total_)
    stage_ = Stage::over;
  else
    enter(call_.kind == CarriedCall::Kind::broadcast && pieces_since_meeting_ == TeamPost::most_rounds_ahead
              ? Stage::meeting
              : Stage::carrying);
}

}  // namespace farsum
