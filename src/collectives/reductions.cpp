#include "collectives/reductions.hpp"

#include <algorithm>
#include <utility>

#include "collectives/node_broadcast.hpp"
#include "collectives/shares.hpp"

namespace farsum {

GroupReductions::GroupReductions(GroupTeam& team, std::uint32_t my_rank, const ReductionMeans& means, Waiter& waiter)
    : team_(team),
      kernels_(means.kernels),
      waiter_(waiter),
      my_rank_(my_rank),
      size_(team.size()),
      order_(means.order),
      copies_(means.peers) {
  if (!team.places().is_one_node()) over_nodes_.emplace(team, my_rank, means);
}

void GroupReductions::begin(std::byte* block) noexcept {
  NodeTeam& node = team_.node();
  std::byte* const rounds = block + GroupBlock::rounds_at(node.ranks());
  rounds_.emplace(rounds, node, waiter_);
  to_root_.emplace(rounds, node, *rounds_, waiter_);
  if (over_nodes_) over_nodes_->begin(*rounds_, *to_root_);
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
    copy_reduced(reduction.result, reduction.mine, result_bytes);
    return {};
  }
  if (over_nodes_) return over_nodes_->run(call);
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
  const FoundAtRoot answer = compare_at_root(call);
  if (answer.what == FoundAtRoot::What::the_same)
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
  FoundAtRoot answer;
  bool says_root_the_same = false;
  const auto heard = std::as_writable_bytes(std::span(&answer, 1));
  Status status = to_root_->leave_and_hear(call.said, {}, call.asked.root, heard, says_root_the_same, call.doing);
  if (!status.is_ok()) return status;
  if (!says_root_the_same) answer = compare_said(*to_root_, team_.places(), call.said, call.asked.root);
  if (answer.what == FoundAtRoot::What::the_same) rounds_->begin_agreed();
  return told_by_root(call, answer);
}

Status GroupReductions::agree_as_root(const Call& call) {
  if (Status status = to_root_->gather(call.said, {}, call.doing); !status.is_ok()) return status;
  const FoundAtRoot answer = compare_at_root(call);
  to_root_->say(std::as_bytes(std::span(&answer, 1)));
  to_root_->finish();
  if (answer.what == FoundAtRoot::What::the_same) rounds_->begin_agreed();
  return told_by_root(call, answer);
}

// The first with which the group ends, if any; else the first that has said something else.
FoundAtRoot GroupReductions::compare_at_root(const Call& call) const {
  FoundAtRoot first;
  for (std::uint32_t member = 0; member < size_; ++member) {
    const FoundAtRoot answer = compare_said(*to_root_, team_.places(), call.said, member);
    if (answer.what == FoundAtRoot::What::out_of_step || waits_in_vain(answer)) return answer;
    if (first.what == FoundAtRoot::What::the_same) first = answer;
  }
  return first;
}

// Whether it is of the root of a broadcast that waits for all.
bool GroupReductions::waits_in_vain(const FoundAtRoot& answer) const {
  return answer.what == FoundAtRoot::What::another_reduction && is_broadcast(answer.said) &&
         root_of(answer.said) == answer.rank && answer.said.count > rounds_->slot_bytes();
}

Status GroupReductions::told_by_root(const Call& call, const FoundAtRoot& answer) {
  switch (answer.what) {
    case FoundAtRoot::What::the_same:
      return {};
    case FoundAtRoot::What::another_reduction: {
      Status status = told_otherwise(refused(call), answer.rank, answer.said);
      return waits_in_vain(answer) ? give_up(for_good(status)) : std::move(status);
    }
    case FoundAtRoot::What::gone_on:
      return gone_on(refused(call), answer.rank);
    case FoundAtRoot::What::no_reduction:
    case FoundAtRoot::What::out_of_step:
      break;
  }
  return give_up(out_of_step(refused(call), answer.rank));
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
    if (is_for_all && have_all_said(*rounds_, call.said)) fold_begun(call, rounds_->answer());
  };
  const std::span<const std::byte> mine(call.asked.mine, call.bytes);
  if (Status status = rounds_->begin(call.said, mine, answer_all, call.doing); !status.is_ok()) return status;
  if (!have_all_said(*rounds_, call.said)) return who_said_otherwise(*rounds_, team_.places(), refused(call));
  if (!call.gets_result) return {};
  if (is_for_all && rounds_->has_a_last())
    copy_reduced(call.asked.result, rounds_->answer(), call.result_bytes);
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
    const Stretch share = share_of_member(call.bytes, member, size_);
    return {.from = share.from, .bytes = share.bytes, .to = share.from};
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
  return have_all_said(*rounds_, call.said) ? Status() : who_said_otherwise(*rounds_, team_.places(), refused(call));
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
    copy_reduced(rounds_->piece(my_place()), call.asked.mine + done, bytes);
    const bool begins = done == 0 && !has_begun;
    if (Status status = begins ? begin_long(call) : rounds_->next_step(call.doing); !status.is_ok()) return status;
    if (Status status = fold_in_shares(call, bytes); !status.is_ok()) return status;
    call.keep(rounds_->answer(), done, bytes);
  }
  return {};
}

// In pieces that have a part of each rank's block, of whole lines, which that rank folds.
Status GroupReductions::run_scattering(const Call& call, bool has_begun) {
  const std::size_t most = rounds_->piece_bytes() / size_ / cache_line_bytes * cache_line_bytes;
  for (std::size_t done = 0; done < call.result_bytes; done += most) {
    const std::size_t bytes = std::min(most, call.result_bytes - done);
    for (std::uint32_t rank = 0; rank < size_; ++rank)
      copy_reduced(rounds_->piece(my_place()) + rank * bytes, call.asked.mine + rank * call.result_bytes + done, bytes);
    const bool begins = done == 0 && !has_begun;
    if (Status status = begins ? begin_long(call) : rounds_->next_step(call.doing); !status.is_ok()) return status;
    call.fold.all(call.asked.result + done, bytes, size_,
                  [&](std::uint32_t member) { return rounds_->piece(member) + my_rank_ * bytes; });
    // Nobody writes its next piece before.
    if (Status status = rounds_->next_step(call.doing); !status.is_ok()) return status;
  }
  return {};
}

// So much of all pieces becomes the answer. No line of it is written by two.
Status GroupReductions::fold_in_shares(const Call& call, std::size_t bytes) {
  const auto [from, own_bytes] = share_of_member(bytes, my_place(), rounds_->ranks());
  call.fold.all(rounds_->answer() + from, own_bytes, rounds_->ranks(),
                [&, from = from](std::uint32_t member) { return rounds_->piece(member) + from; });
  return rounds_->next_step(call.doing);
}

// All have written the piece that begins there.
Status GroupReductions::begin_piece(const Call& call, std::size_t done) {
  const auto nothing = [] {};
  return done == 0 ? rounds_->begin(call.said, {}, nothing, call.doing) : rounds_->next_step(call.doing);
}

}  // namespace farsum
