#include "variants/leases/leased_path.hpp"

#include "protocol/packed_sides.hpp"
#include "variants/leases/leased_update.hpp"

namespace farsum {

Status LeasedPath::run(const ExecutorCall& of) {
  const Operation& operation = of.operation;
  const char* call = call_name(operation.kind);
  if (Status status = services_.locks.learn(of.target, call); !status.is_ok()) return status;
  const PackedOperand operand(operation);
  PackedResult result(operation);
  Operation packed = operation;
  packed.operand = operand.data();
  packed.result = result.data();
  packed.operand_layout = packed.result_layout = ops::LayoutView::contiguous(operation.bytes);
  const Rank owner = services_.ranks[of.target];
  LeasedUpdate update({.engine = &engine_,
                       .kernels = &services_.kernels,
                       .room = transport_.capabilities(owner),
                       .owner = owner,
                       .window = services_.window},
                      packed, services_.views[of.target].outstanding);
  if (!update.advance()) {
    // Where the wait fails the engine points at the pieces no more.
    Status status = services_.messages.wait(
        of.target, [&update] { return update.advance(); }, call);
    if (!status.is_ok()) return status;
  }
  if (const std::uint64_t left = update.bytes_left_to_owner(); left != 0) services_.counters.count(Path::owner, left);
  if (update.code() == Code::ok) result.deliver();
  return services_.texts.answered(of.target, call, update.code());
}

}  // namespace farsum
