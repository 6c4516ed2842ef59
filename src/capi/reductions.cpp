// Reductions of the C interface. What one rank can see to be wrong is refused before the others learn of the call.
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "capi/global.hpp"
#include "collectives/reductions.hpp"

namespace farsum::capi {
namespace {

Status check_reducible(const char* call, farsum_type type, farsum_op op) {
  if (!ops::is_element_type(static_cast<unsigned>(type)))
    return {Code::type, fmt::format("{}: unknown type {}", call, static_cast<int>(type))};
  if (!ops::is_operator(static_cast<unsigned>(op)))
    return {Code::type, fmt::format("{}: unknown operator {}", call, static_cast<int>(op))};
  const auto element = static_cast<ops::ElementType>(type);
  const auto combining = static_cast<ops::Operator>(op);
  if (can_fold(element, combining)) return {};
  return {Code::type, fmt::format("{}: operator {} reduces no elements of {}; docs/OPERATORS.md lists the legal pairs, "
                                  "of which scaled_sum, replace and no_op are for windows alone",
                                  call, ops::name_of(combining), ops::name_of(element))};
}

struct Lengths {
  std::size_t mine = 0;
  std::size_t result = 0;
};

// `blocks`: how many of `count` elements each rank brings.
Status measure(const char* call, std::size_t count, std::size_t element_bytes, std::size_t blocks, Lengths& lengths) {
  if (!__builtin_mul_overflow(count, element_bytes, &lengths.result) &&
      !__builtin_mul_overflow(lengths.result, blocks, &lengths.mine) && lengths.mine <= PTRDIFF_MAX)
    return {};
  return {Code::range, fmt::format("{}: {} elements of {} bytes for each of {} ranks are more than memory can hold",
                                   call, count, element_bytes, blocks)};
}

Status check_buffers(const char* call, const void* mine, const void* result, const Lengths& lengths) {
  if (lengths.result == 0) return {};
  if (mine == nullptr || result == nullptr) return {Code::argument, fmt::format("{}: a buffer is null", call)};
  const auto from = reinterpret_cast<std::uintptr_t>(mine);
  const auto to = reinterpret_cast<std::uintptr_t>(result);
  if (from == to || (to > from ? to - from >= lengths.mine : from - to >= lengths.result)) return {};
  return {Code::argument,
          fmt::format("{}: the result begins {} bytes {} the elements that this rank brings, and overlaps them; it "
                      "must be apart from them or begin where they do",
                      call, to > from ? to - from : from - to, to > from ? "behind" : "before")};
}

// What a call of the C interface asks for, but for its group.
struct Asked {
  GroupReduction::Kind kind;
  const void* mine;
  void* result;
  std::size_t count;
  farsum_type type;
  farsum_op op;
  int root = 0;
};

Status reduce_in(Group& group, const Asked& asked, const char* call) {
  if (asked.root < 0 || asked.root >= static_cast<int>(group.size())) {
    return {Code::rank, fmt::format("{}: root {} is not in the group, whose ranks are 0 to {}", call, asked.root,
                                    group.size() - 1)};
  }
  if (Status status = check_reducible(call, asked.type, asked.op); !status.is_ok()) return status;
  const auto root = static_cast<std::uint32_t>(asked.root);
  const bool gets_result = asked.kind != GroupReduction::Kind::reduce || root == group.my_rank();
  const auto type = static_cast<ops::ElementType>(asked.type);
  const std::size_t blocks = asked.kind == GroupReduction::Kind::reduce_scatter_block ? group.size() : 1;
  Lengths lengths;
  if (Status status = measure(call, asked.count, ops::size_of(type), blocks, lengths); !status.is_ok()) return status;
  // Who gets nothing may give anything for it.
  const void* const result = gets_result ? asked.result : asked.mine;
  if (Status status = check_buffers(call, asked.mine, result, lengths); !status.is_ok()) return status;
  return group.reductions().run({.kind = asked.kind,
                                 .type = type,
                                 .op = static_cast<ops::Operator>(asked.op),
                                 .root = root,
                                 .count = asked.count,
                                 .mine = static_cast<const std::byte*>(asked.mine),
                                 .result = gets_result ? static_cast<std::byte*>(asked.result) : nullptr},
                                call);
}

farsum_status reduce(farsum_group handle, const Asked& asked, const char* call) {
  return guarded(call, [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_meeting_group(call, handle, group); status != FARSUM_OK) return status;
    return report(reduce_in(*group, asked, call));
  });
}

}  // namespace
}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

extern "C" {

farsum_status farsum_allreduce(farsum_group group, const void* mine, void* result, size_t count, farsum_type type,
                               farsum_op op) {
  return reduce(group, {GroupReduction::Kind::allreduce, mine, result, count, type, op}, "farsum_allreduce");
}

farsum_status farsum_reduce(farsum_group group, const void* mine, void* result, size_t count, farsum_type type,
                            farsum_op op, int root) {
  return reduce(group, {GroupReduction::Kind::reduce, mine, result, count, type, op, root}, "farsum_reduce");
}

farsum_status farsum_reduce_scatter_block(farsum_group group, const void* mine, void* result, size_t count,
                                          farsum_type type, farsum_op op) {
  return reduce(group, {GroupReduction::Kind::reduce_scatter_block, mine, result, count, type, op},
                "farsum_reduce_scatter_block");
}

}  // extern "C"
