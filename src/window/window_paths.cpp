// How an operation that did not finish on the hot path is carried out: one decision (route), then one body per path.
// Windows of cards and reads that copies may answer go their own ways before it.
#include <fmt/format.h>

#include "variants/leases/leased_update.hpp"
#include "window/window.hpp"

namespace farsum {
namespace {

// An atomic operation on one element, of whatever type: what the agent or a CPU atomic does best.
bool is_single_element(const Operation& operation) {
  return is_atomic(operation.kind) && operation.bytes == ops::size_of(operation.type);
}

}  // namespace

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
                        : Status(Code::peer_failed, where(call_name(operation.kind), target) + dead);
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

Window::Route Window::route(const Operation& operation, std::uint32_t target, RegionRef at,
                            Completion completion) const {
  Route route;
  route.at = std::move(at);
  if (route.at.region == nullptr) return route;  // a bare notification: a message
  const bool atomic = is_single_element(operation);
  route.path = atomic ? route.at.region->atomic : route.at.region->bulk;
  // Bulk atomics on memory that only CPU atomics may touch follow the atomic path.
  if (is_atomic(operation.kind) && route.at.region->domain.atomics_only) route.path = route.at.region->atomic;
  const bool is_bulk = is_atomic(operation.kind) && !atomic;
  if (is_bulk && route.path == Path::owner && operation.bytes >= route.at.region->caller_from_bytes)
    route.path = Path::caller;
  // What crosses from one region into the next is contiguous at the owner, who also finds the locks of each piece.
  if (!route.at.whole && (route.path == Path::direct || route.path == Path::caller)) route.path = Path::owner;
  if (!route.at.is_reached) [[unlikely]]
    route.path = Path::owner;
  if (!route.at.same_locks && is_atomic(operation.kind)) route.path = Path::owner;
  // At a remote target a notification is the owner's to make, with the last of the data.
  if (route.path == Path::caller && operation.notify && !is_here(target)) route.path = Path::owner;
  // What somebody waits for is not gathered; what was gathered goes before it.
  const bool gathers =
      atomic && operation.kind == OperationKind::accumulate && !operation.notify && completion == Completion::implicit;
  if (route.path == Path::aggregated && !gathers) route.path = Path::owner;
  return route;
}

Status Window::carry_out(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
                         RequestState* request) {
  if (Status status = settle_before(operation, target, route.path); !status.is_ok()) return status;
  const bool as_messages = goes_as_messages(operation, target, route.path);
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
      status = run_direct(operation, target, *route.at.region);
      break;
    case Path::attach:
      status = run_attach(operation, target, *route.at.region);
      break;
    case Path::caller:
      if (as_messages) return run_owner(operation, target, completion, request);
      status = is_here(target) ? run_caller(operation, target, *route.at.region) : run_leased(operation, target);
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

// Caller-computes at other nodes sends what is only moved as messages.
bool Window::goes_as_messages(const Operation& operation, std::uint32_t target, Path path) const {
  switch (path) {
    case Path::owner:
    case Path::aggregated:
    case Path::offload:
      return true;
    case Path::direct:
    case Path::attach:
      return false;
    case Path::caller:
      return !is_here(target) && !LeasedUpdate::is_needed_for(operation);
  }
  return false;
}

// Keeps the order of atomics on one location when the path changes: what travels as a message, or is still gathered,
// comes first.
Status Window::settle_before(const Operation& operation, std::uint32_t target, Path path) {
  Detail& detail = details_[target];
  const bool must_order = detail.ordered.load(std::memory_order_relaxed);
  if (path != Path::aggregated && hot_parts_.aggregates) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  if (goes_as_messages(operation, target, path)) return {};  // one ring, one order
  const bool ordered_kind = is_atomic(operation.kind) && (parts_.promises & promise_no_ordering) == 0;
  if (!ordered_kind && !must_order) return {};
  if (views_[target].outstanding.count.load(std::memory_order_acquire) == 0) return {};
  return wait_outstanding(target, call_name(operation.kind));
}

Status Window::applied_status(Applied applied, const AtomicDomain& domain, std::uint64_t offset, const char* call,
                              std::uint32_t target) const {
  if (applied == Applied::done) return {};
  const std::uint32_t first_holder = domain.lock_of(offset).holder();
  // An element may straddle two stripes, and the other be the one.
  const std::uint32_t holder = first_holder != 0 ? first_holder : domain.next_lock_of(offset).holder();
  return {Code::peer_failed, fmt::format("{}: {} while it held the lock of the stripe at offset {}{}",
                                         where(call, target), fate_of(parts_.lock_agent.liveness, holder - 1), offset,
                                         cause_of_death(parts_.lock_agent.liveness, holder - 1))};
}

Status Window::transfer_status(Transfer how, const char* call, std::uint32_t target, std::uint64_t offset,
                               std::uint64_t bytes, const std::string& missing) const {
  switch (how) {
    case Transfer::done:
    case Transfer::started:
      return {};
    case Transfer::bad_address:
      return {Code::unreachable,
              fmt::format(
                  "{}: bytes [{}, {}) are exposed, but the rank no longer has that memory mapped (was it freed while "
                  "the window lives?) or only for reading{}",
                  where(call, target), offset, offset + bytes, missing)};
    case Transfer::refused:
      return {Code::unreachable,
              fmt::format("{}: the kernel refuses to copy between the processes", where(call, target))};
    case Transfer::peer_dead:
      return {Code::peer_failed,
              fmt::format("{}: {}{}", where(call, target), fate_of(parts_.lock_agent.liveness, parts_.ranks[target]),
                          cause_of_death(parts_.lock_agent.liveness, parts_.ranks[target]))};
  }
  return {Code::system, "unknown transfer result"};
}

}  // namespace farsum
