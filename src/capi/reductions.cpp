// Reductions of the C interface. What one rank can see to be wrong is refused before the others learn of the call.
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "capi/buffer_checks.hpp"
#include "capi/global.hpp"
#include "collectives/reductions.hpp"

namespace farsum::capi {
namespace {

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
  group.count_blocking_call();
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
