// How an operation that did not finish on the hot path is carried out: one decision (choose_route), then one body per path.
// Windows of cards and reads that copies may answer go their own ways before it.
#include <fmt/format.h>

#include "window/window.hpp"

namespace farsum {

Status Window::check(const Operation& operation, std::uint32_t target, RegionRef& at) {
  const char* call = call_name(operation.kind);
  if (Status status = checks_.rank(call, target); !status.is_ok()) return status;
  if (!in_access_epoch(target)) {
    return {Code::sync,
            fmt::format("{}: outside an access epoch; begin one with farsum_fence, farsum_start, farsum_lock or "
                        "farsum_lock_all",
                        texts_.where(call, target))};
  }
  Status status = checks_.all(operation, target, at);
  if (card_targets_ == nullptr || !status.is_ok() || at.region == nullptr) return status;
  return check_for_card(operation, target, *at.region);
}

Status Window::operate(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
  note_issued();
  if (target < size_ && awaits_post(target)) [[unlikely]] {
    Status status;
    if (completion == Completion::implicit && defer_until_post(operation, target, status)) return status;
    if (status = await_post(target, call_name(operation.kind)); !status.is_ok()) return status;
  }
  return operate_now(operation, target, completion, request);
}

Status Window::operate_now(const Operation& operation, std::uint32_t target, Completion completion,
                           RequestState* request) {
  Status status = operate_unnoted(operation, target, completion, request);
  // It is noted where the operation failed, too: some of it may have happened.
  if (target < size_ && writes(operation.kind, operation.op)) note_change(target);
  return status;
}

Status Window::operate_unnoted(const Operation& operation, std::uint32_t target, Completion completion,
                               RequestState* request) {
  RegionRef at;
  if (Status status = check(operation, target, at); !status.is_ok()) {
    if (!parts_.dynamic || status.code() != Code::range) return status;
    // A rank that died while it changed its table exposes nothing any more.
    const std::string dead = name_the_dead(parts_.lock_agent.liveness, {parts_.ranks[target]});
    return dead.empty() ? std::move(status)
                        : Status(Code::peer_failed, texts_.where(call_name(operation.kind), target) + dead);
  }
  // An accumulate of no_op does nothing, and its operand may be null.
  const bool does_nothing =
      operation.bytes == 0 || (operation.kind == OperationKind::accumulate && operation.op == ops::Operator::no_op);
  if (does_nothing && !operation.notify) {
    if (request != nullptr) request->done.store(true, std::memory_order_release);
    return {};
  }
  if (card_targets_ != nullptr) return run_offload(operation, target, at.region, completion, request);
  if (read_ahead_ != nullptr && !is_here(target)) [[unlikely]]
    return operate_with_copies(operation, target, std::move(at), completion, request);
  return carry_out(operation, target, route(operation, target, std::move(at), completion), completion, request);
}

Status Window::carry_out(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
                         RequestState* request) {
  if (Status status = settle_before(operation, target, route.path); !status.is_ok()) return status;
  const bool as_messages = goes_as_messages(operation, route.path, is_here(target));
  if (route.path == Path::direct) {
    count_direct(views_[target], operation.bytes);
  } else {
    const bool moves_twice = route.path == Path::caller && is_atomic(operation.kind) && !as_messages;
    count_other(views_[target], operation.bytes);
    count(route.path, moves_twice ? 2 * operation.bytes : operation.bytes);
  }
  Status status;
  switch (route.path) {
    case Path::owner:
    case Path::offload:  // is a whole window's: run_offload
      return run_owner(operation, target, completion, request);
    case Path::aggregated:
      return run_aggregated(operation, target);
    case Path::direct:
      status = mapped_.run(operation, target, *route.at.region);
      break;
    case Path::attach:
      status = copied_.attach(operation, target, *route.at.region);
      break;
    case Path::caller:
      if (as_messages) return run_owner(operation, target, completion, request);
      status = is_here(target) ? copied_.caller(operation, target, *route.at.region) : run_leased(operation, target);
      break;
  }
  note_stores(views_[target]);
  if (parts_.hearing != nullptr && tells_of_others(operation)) parts_.hearing->hear();
  if (!status.is_ok()) return status;
  if (operation.notify) {
    // Release: the data comes before the notification; pairs with the acquire load in notify_wait.
    parts_.shared[target].notifications()[operation.notify_slot].fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[target]);
  }
  if (request != nullptr) request->done.store(true, std::memory_order_release);
  return {};
}

// Keeps the order of atomics on one location when the path changes: what travels as a message, or is still gathered,
// comes first.
Status Window::settle_before(const Operation& operation, std::uint32_t target, Path path) {
  Detail& detail = details_[target];
  const bool must_order = detail.ordered.load(std::memory_order_relaxed);
  if (path != Path::aggregated && hot_parts_.aggregates) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  if (goes_as_messages(operation, path, is_here(target))) return {};  // one ring, one order
  const bool ordered_kind = is_atomic(operation.kind) && (parts_.promises & promise_no_ordering) == 0;
  if (!ordered_kind && !must_order) return {};
  if (views_[target].outstanding.count.load(std::memory_order_acquire) == 0) return {};
  return wait_outstanding(target, call_name(operation.kind));
}

bool Window::may_update_by_copy(std::uint32_t target, std::uint64_t offset, ops::ElementType type,
                                ops::Operator op) const {
  if (target >= size_) return false;
  const Region* region = details_[target].copied;
  const std::uint64_t bytes = ops::size_of(type);
  if (region == nullptr || region->bytes < bytes || offset > region->bytes - bytes) return false;
  if (op == ops::Operator::scaled_sum || !ops::legal(type, op)) return false;
  // Relaxed: as in_access_epoch(). Acquire: as settle_before().
  return views_[target].open.load(std::memory_order_relaxed) > no_epoch && !awaits_post(target) &&
         views_[target].outstanding.count.load(std::memory_order_acquire) == 0;
}

Status Window::update_by_copy(std::uint32_t target, std::uint64_t offset, const ElementUpdate& element) {
  const bool swaps = element.compare != nullptr;
  const CopiedPath::Update update{swaps ? Reduction{element.type, ops::Operator::replace}
                                : make_reduction(*parts_.kernels, element.type, element.op, nullptr, 0),
                          element.compare, element.result != nullptr};
  const OperationKind kind = swaps                       ? OperationKind::compare_and_swap
                             : element.result != nullptr ? OperationKind::get_accumulate
                                                         : OperationKind::accumulate;
  note_issued();
  const std::uint64_t bytes = update.reduction.element_bytes();
  count_other(views_[target], bytes);
  count(Path::attach, bytes);
  Status status = copied_.update_element(
      update, {call_name(kind), target, *details_[target].copied, offset, element.operand, element.result});
  note_stores(views_[target]);
  if (parts_.hearing != nullptr && tells_of_others(kind, element.op)) parts_.hearing->hear();
  if (writes(kind, element.op)) note_change(target);
  return status;
}

}  // namespace farsum
