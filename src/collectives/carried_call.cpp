#include "collectives/carried_call.hpp"

#include <array>

#include <fmt/format.h>

#include "collectives/reduction_refusals.hpp"

namespace farsum {
namespace {

constexpr std::array<const char*, CarriedCall::kinds> names_of_carried = {
    "barrier", "broadcast", "allgather", "allreduce", "reduce", "reduce_scatter_block"};

// Where in SaidOfCall::what each begins, behind the kind.
constexpr unsigned carried_order_at = 7;
constexpr unsigned carried_type_at = 8;
constexpr unsigned carried_op_at = 16;
constexpr unsigned carried_before_at = 24;
constexpr unsigned carried_root_at = 32;

std::string carried_in_words(const SaidOfCall& said) {
  const std::optional<CarriedCall> call = call_in(said);
  if (!call) return "something unknown";
  std::string words = names_of_carried[static_cast<std::size_t>(call->kind)];
  if (call->kind == CarriedCall::Kind::barrier) return words;
  words += fmt::format(" of {} elements of {}", call->count, ops::name_of(call->type));
  if (call->reduces()) words += fmt::format(" by {}", ops::name_of(call->op));
  if (call->order == ReduceOrder::ranks) words += " with FARSUM_REDUCE_ORDER=ranks";
  if (call->kind == CarriedCall::Kind::broadcast) words += fmt::format(" from root {}", call->root);
  if (call->kind == CarriedCall::Kind::reduce) words += fmt::format(" to root {}", call->root);
  return words;
}

bool are_in_step(const SaidOfCall& one, const SaidOfCall& other) {
  return ((one.what ^ other.what) >> carried_before_at & 0xff) == 0;
}

Status told_of_another_call(const char* doing, std::uint32_t my_rank, const SaidOfCall& mine,
                            const CarriedFinding& found) {
  const bool is_mine = found.said == mine;
  const SaidOfCall& said = is_mine ? found.other_said : found.said;
  const char* const why =
      are_in_step(mine, said)
          ? "the kind, the count, the type, the operator, the root and FARSUM_REDUCE_ORDER must be the "
            "same on all ranks"
          : "they have made different numbers of blocking calls of the group before; all ranks "
            "must make the same calls in the same order";
  return {Code::argument, fmt::format("{}: rank {} of the group has called {}, this rank {} {}; {}", doing,
                                      is_mine ? found.other_rank : found.rank, carried_in_words(said), my_rank,
                                      carried_in_words(mine), why)};
}

}  // namespace

std::size_t CarriedCall::part_bytes(std::uint32_t rank, std::uint32_t size) const {
  if (kind == CarriedCall::Kind::broadcast) return rank == root ? bytes() : 0;
  return kind == CarriedCall::Kind::reduce_scatter_block ? bytes() * size : bytes();
}

std::size_t CarriedCall::answer_bytes(std::uint32_t size) const {
  return kind == CarriedCall::Kind::allgather || kind == CarriedCall::Kind::reduce_scatter_block ? bytes() * size
                                                                                                 : bytes();
}

CarriedCall::Share CarriedCall::share_of(std::uint32_t rank, std::uint32_t size) const {
  switch (kind) {
    case CarriedCall::Kind::barrier:
      return {};
    case CarriedCall::Kind::broadcast:
      return {0, rank == root ? 0 : bytes()};
    case CarriedCall::Kind::reduce:
      return {0, rank == root ? bytes() : 0};
    case CarriedCall::Kind::allgather:
    case CarriedCall::Kind::allreduce:
      return {0, answer_bytes(size)};
    case CarriedCall::Kind::reduce_scatter_block:
      break;
  }
  return {rank * bytes(), bytes()};
}

SaidOfCall said_of(const CarriedCall& call, std::uint64_t calls_before) {
  return {static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.order) << carried_order_at |
              static_cast<std::uint64_t>(call.type) << carried_type_at |
              static_cast<std::uint64_t>(call.op) << carried_op_at | (calls_before & 0xff) << carried_before_at |
              std::uint64_t{call.root} << carried_root_at,
          call.count};
}

std::optional<CarriedCall> call_in(const SaidOfCall& said) {
  const std::uint64_t kind = said.what & 0x7f, type = said.what >> carried_type_at & 0xff,
                      op = said.what >> carried_op_at & 0xff;
  if (kind >= CarriedCall::kinds || !ops::is_element_type(type) || !ops::is_operator(op)) return std::nullopt;
  return CarriedCall{static_cast<CarriedCall::Kind>(kind),
                     static_cast<ops::ElementType>(type),
                     static_cast<ops::Operator>(op),
                     static_cast<std::uint32_t>(said.what >> carried_root_at),
                     said.count,
                     static_cast<ReduceOrder>(said.what >> carried_order_at & 1)};
}

Status told(const char* doing, std::uint32_t my_rank, const SaidOfCall& mine, const CarriedFinding& found) {
  switch (found.what) {
    case CarriedFinding::What::the_same:
      return {};
    case CarriedFinding::What::another_call:
      return told_of_another_call(doing, my_rank, mine, found);
    case CarriedFinding::What::lacks_memory:
      return {Code::no_memory,
              fmt::format("{}: rank {} of the group has no room to map what others bring", doing, found.rank)};
    case CarriedFinding::What::too_scattered:
      return too_scattered({doing, my_rank, mine});
    case CarriedFinding::What::garbled:
      return {Code::system,
              fmt::format("{}: what the node of rank {} of the group has sent makes no sense; the group is of no "
                          "further use",
                          doing, found.rank)};
    case CarriedFinding::What::cut_off:
      break;
  }
  return {Code::system,
          fmt::format("{}: a rank of another host has refused what rank {} of the group told it, and waits for it; "
                      "the group is of no further use",
                      doing, found.rank)};
}

}  // namespace farsum
