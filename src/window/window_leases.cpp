// Caller-computes at targets of other nodes, where no lock is held over the network: see
// variants/leases/leased_update.hpp.
#include "protocol/packed_sides.hpp"
#include "variants/leases/leased_update.hpp"
#include "window/window.hpp"

namespace farsum {

Status Window::run_leased(const Operation& operation, std::uint32_t target) {
  const char* call = call_name(operation.kind);
  const Rank owner = parts_.ranks[target];
  if (Status status = learn_of_lock(target, call); !status.is_ok()) return status;
  const PackedOperand operand(operation);
  PackedResult result(operation);
  Operation packed = operation;
  packed.operand = operand.data();
  packed.result = result.data();
  packed.operand_layout = packed.result_layout = ops::LayoutView::contiguous(operation.bytes);
  LeasedUpdate update({.engine = parts_.engine,
                       .kernels = parts_.kernels,
                       .room = parts_.transport->capabilities(owner),
                       .owner = owner,
                       .window = parts_.id},
                      packed, views_[target].outstanding);
  Status status = update.advance() ? Status()
                                   : parts_.waiter->wait(
                                         parts_.waiter->own_events(),
                                         [&] {
                                           take_replies(owner);
                                           return update.advance();
                                         },
                                         call);
  if (!status.is_ok()) {
    // The engine points at the pieces until what is under way is ended.
    parts_.engine->fail_all();
    return status;
  }
  if (const std::uint64_t left = update.bytes_left_to_owner(); left != 0) count(Path::owner, left);
  if (update.code() == Code::ok) result.deliver();
  return texts_.answered(target, call, update.code());
}

}  // namespace farsum
