#include "collectives/reduction_refusals.hpp"

#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum {
namespace {

constexpr std::array<const char*, 3> kind_names = {"farsum_allreduce", "farsum_reduce", "farsum_reduce_scatter_block"};
// Beside the kinds of reductions.
constexpr std::uint64_t kind_of_broadcast = kind_names.size();

// Where in SaidOfCall::what each begins.
constexpr unsigned order_at = 7;
constexpr unsigned type_at = 8;
constexpr unsigned op_at = 16;
constexpr unsigned before_at = 24;
constexpr unsigned root_at = 32;

std::uint64_t kind_in(const SaidOfCall& said) { return said.what & 0x7f; }
bool goes_by_ranks(const SaidOfCall& said) { return (said.what >> order_at & 1) != 0; }
std::uint64_t type_in(const SaidOfCall& said) { return said.what >> type_at & 0xff; }
std::uint64_t op_in(const SaidOfCall& said) { return said.what >> op_at & 0xff; }

std::string in_words(const SaidOfCall& said) {
  if (is_broadcast(said)) return fmt::format("farsum_broadcast of {} bytes from root {}", said.count, root_of(said));
  const auto kind = static_cast<GroupReduction::Kind>(kind_in(said));
  std::string words = fmt::format("{} of {} elements of {} by {}", kind_names[static_cast<std::size_t>(kind)],
                                  said.count, ops::name_of(static_cast<ops::ElementType>(type_in(said))),
                                  ops::name_of(static_cast<ops::Operator>(op_in(said))));
  if (kind == GroupReduction::Kind::reduce) words += fmt::format(" to root {}", root_of(said));
  if (goes_by_ranks(said)) words += " with FARSUM_REDUCE_ORDER=ranks";
  return words;
}

// What differs between two such calls.
const char* must_be_the_same(const SaidOfCall& mine, const SaidOfCall& other) {
  if (is_broadcast(mine) != is_broadcast(other)) return "the call";
  if (is_broadcast(mine)) return "the length and the root";
  return "the call, the count, the type, the operator, the root and FARSUM_REDUCE_ORDER";
}

}  // namespace

SaidOfCall said_of(const GroupReduction& asked, ReduceOrder order) {
  const std::uint64_t by_ranks = order == ReduceOrder::ranks ? 1 : 0;
  return {static_cast<std::uint64_t>(asked.kind) | by_ranks << order_at |
              static_cast<std::uint64_t>(asked.type) << type_at | static_cast<std::uint64_t>(asked.op) << op_at |
              std::uint64_t{asked.root} << root_at,
          asked.count};
}

SaidOfCall said_of_broadcast(std::uint64_t bytes, std::uint32_t root) {
  return {kind_of_broadcast | std::uint64_t{root} << root_at, bytes};
}

bool is_broadcast(const SaidOfCall& said) { return kind_in(said) == kind_of_broadcast; }
std::uint32_t root_of(const SaidOfCall& said) { return static_cast<std::uint32_t>(said.what >> root_at); }

void say_what_came_before(SaidOfCall& said, std::uint64_t calls) { said.what |= (calls & 0xff) << before_at; }

bool say_the_same_came_before(const SaidOfCall& one, const SaidOfCall& other) {
  return ((one.what ^ other.what) >> before_at & 0xff) == 0;
}

bool makes_sense(const SaidOfCall& said) {
  return kind_in(said) < kind_names.size() && ops::is_element_type(type_in(said)) && ops::is_operator(op_in(said));
}

Status told_otherwise(const RefusedReduction& refused, std::uint32_t rank, const SaidOfCall& other) {
  return {Code::argument,
          fmt::format("{}: rank {} of the group has called {}, this rank {} {}; {} must be the same on all ranks",
                      refused.doing, rank, in_words(other), refused.my_rank, in_words(refused.mine),
                      must_be_the_same(refused.mine, other))};
}

Status for_good(const Status& told) {
  return {told.code(), fmt::format("{}, and the group cannot be used any further", told.text())};
}

std::string name_of_node(std::uint32_t first_rank) { return fmt::format("the node of rank {}", first_rank); }

Status no_reduction_by(const RefusedReduction& refused, const std::string& who) {
  return {Code::argument,
          fmt::format("{}: {} made a call that is no reduction while rank {} of the group called {}; all "
                      "ranks must make the same calls in the same order, and the group cannot be used "
                      "any further",
                      refused.doing, who, refused.my_rank, in_words(refused.mine))};
}

Status too_scattered(const RefusedReduction& refused) {
  return {
      Code::unsupported,
      fmt::format("{}: with FARSUM_REDUCE_ORDER=ranks a message between nodes has no room for an element of each of "
                  "so many ranks whose neighbours are on other nodes",
                  refused.doing)};
}

Status out_of_step(const RefusedReduction& refused, std::uint32_t rank) {
  return {Code::argument,
          fmt::format("{}: rank {} of the group has made other calls than rank {}, which now called {}; all ranks must "
                      "make the same calls in the same order, and the group cannot be used any further",
                      refused.doing, rank, refused.my_rank, in_words(refused.mine))};
}

Status gone_on(const RefusedReduction& refused, std::uint32_t rank) {
  return {Code::argument,
          fmt::format("{}: rank {} of the group has called another farsum_reduce or farsum_broadcast, and has gone "
                      "on; this rank {} {}; {} must be the same on all ranks",
                      refused.doing, rank, refused.my_rank, in_words(refused.mine),
                      is_broadcast(refused.mine) ? "the call, the length and the root"
                                                 : "the call, the count, the type, the operator and the root")};
}

}  // namespace farsum
