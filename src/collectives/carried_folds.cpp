#include "collectives/carried_folds.hpp"

#include <algorithm>

#include "collectives/fold.hpp"

namespace farsum {

CarriedFolds::CarriedFolds(const Parts& parts)
    : memory_(parts.memory), bells_(parts.bells), help_(parts.help), kernels_(parts.kernels) {
  if (memory_.group().is_one_node() || parts.order != ReduceOrder::ranks) return;
  // Which join the ranks here is the same at any degree and length.
  const RankOrder order(memory_.group(), 0, {.piece_bytes = 0, .letter_bytes = 0});
  joins_here_.assign(order.joins_here().begin(), order.joins_here().end());
}

// Nobody goes from the call before it has ended.
void CarriedFolds::begin(std::uint64_t number) {
  CarriedPlace& here = memory_.place(number);
  here.found = compare(number);
  const CarriedCall call = call_in(memory_.part(number, memory_.me()).said).value_or(CarriedCall{});
  if (here.found.what == CarriedFinding::What::the_same && !memory_.is_short(call) && !memory_.reach_all(number, call))
    here.found = {memory_.my_rank(), CarriedFinding::What::lacks_memory, {}, {}};
  const std::size_t bytes = here.found.what == CarriedFinding::What::the_same ? bytes_to_fold(call) : 0;
  const std::uint64_t slices = (bytes + slice_bytes - 1) / slice_bytes;
  // Relaxed: published by what is offered.
  here.lacking.store(0, std::memory_order_relaxed);
  here.calls.offer(CarriedPlace::turn_of(number), slices);
  if (slices == 0) return end(number);
  fold_slice(number);
  if (slices == 1) return;
  // Those that wait fold, too.
  here.events.notify_all();
  help_.ring(0);
}

CarriedFinding CarriedFolds::compare(std::uint64_t number) const {
  const std::vector<std::uint32_t>& here = memory_.group().here;
  const SaidOfCall& first = memory_.part(number, 0).said;
  for (std::uint32_t member = 1; member < memory_.ranks(); ++member) {
    const SaidOfCall& said = memory_.part(number, member).said;
    if (said != first) return {here[member], CarriedFinding::What::another_call, said, first, here[0]};
  }
  return {};
}

// What ranks of this node bring becomes part of the answer: of what they gather or broadcast it is copied.
std::size_t CarriedFolds::bytes_to_fold(const CarriedCall& call) const {
  if (call.kind == CarriedCall::Kind::allgather) return call.bytes() * memory_.ranks();
  if (call.kind == CarriedCall::Kind::broadcast) return memory_.group().is_here(call.root) ? call.bytes() : 0;
  return call.answer_bytes(memory_.size());
}

bool CarriedFolds::fold_slice(std::uint64_t number) {
  return fold_taken(number % CarriedMemory::places,
                    memory_.place(number).calls.take_slice(CarriedPlace::turn_of(number)));
}

bool CarriedFolds::fold_slice_in(std::uint64_t of_place) {
  return fold_taken(of_place, memory_.place(of_place).calls.take_slice());
}

bool CarriedFolds::fold_taken(std::uint64_t of_place, const std::optional<CallPlace::Slice>& slice) {
  if (!slice) return false;
  CarriedPlace& here = memory_.place(of_place);
  const std::uint64_t number = slice->call * CarriedMemory::places + of_place;
  // Relaxed: published by the end of the slice.
  if (!fold(number, slice->index)) here.lacking.store(memory_.my_rank() + 1, std::memory_order_relaxed);
  if (here.calls.end_slice()) end(number);
  return true;
}

// False: this process has no room to map what is to be folded.
bool CarriedFolds::fold(std::uint64_t number, std::uint64_t slice) const {
  const CarriedCall call = call_in(memory_.part(number, 0).said).value_or(CarriedCall{});
  if (!memory_.is_short(call) && !memory_.reach_all(number, call)) return false;
  const GroupPlaces& group = memory_.group();
  std::byte* const answer = memory_.answer_of(number, call);
  const std::size_t from = slice * slice_bytes;
  const std::size_t bytes = std::min(slice_bytes, bytes_to_fold(call) - from);
  const auto data = [&](std::uint32_t member) {
    return memory_.data_of(number, member, memory_.part_bytes(call, member));
  };
  if (call.reduces_by_ranks() && !group.is_one_node()) {
    fold_by_ranks(number, call, from, bytes);
  } else if (call.reduces()) {
    Fold(kernels_, call.type, call.op, call.order)
        .all(answer + from, bytes, memory_.ranks(), [&](std::uint32_t member) { return data(member) + from; });
  } else if (call.kind == CarriedCall::Kind::broadcast) {
    copy_carried(answer + from, data(group.place_of(call.root)) + from, bytes);
  } else {
    const std::size_t length = call.bytes();
    for (std::size_t done = 0; done < bytes;) {
      const auto member = static_cast<std::uint32_t>((from + done) / length);
      const std::size_t within = (from + done) % length;
      const std::size_t part = std::min(length - within, bytes - done);
      copy_carried(answer + group.here[member] * length + within, data(member) + within, part);
      done += part;
    }
  }
  return true;
}

// Over several nodes: what ranks here bring becomes that of the aligned blocks of them that are left, in their places.
void CarriedFolds::fold_by_ranks(std::uint64_t number, const CarriedCall& call, std::size_t from,
                                 std::size_t bytes) const {
  const Fold fold(kernels_, call.type, call.op);
  const auto data = [&](std::uint32_t rank) {
    const std::uint32_t member = memory_.group().place_of(rank);
    return memory_.data_of(number, member, memory_.part_bytes(call, member)) + from;
  };
  for (const RankOrder::Join& join : joins_here_) fold.one_more(data(join.left), data(join.right), bytes);
}

// This node's part of the call is whole.
void CarriedFolds::end(std::uint64_t number) {
  CarriedPlace& here = memory_.place(number);
  const std::uint32_t lacking = here.lacking.load(std::memory_order_relaxed);
  if (lacking != 0) here.found = {lacking - 1, CarriedFinding::What::lacks_memory, {}, {}};
  if (memory_.group().is_one_node()) return bells_.conclude(number);
  // Release pairs with the acquire in CarriedWalks::walk_place().
  here.is_folded.store(CarriedPlace::tag_of(number), std::memory_order_release);
  // The first rank's own process walks when it has left what it does here.
  if (!memory_.is_first()) help_.ring(0);
}

}  // namespace farsum
