// How a window carries out an operation that did not finish on the hot path: check, one decision (choose_route), then
// one body per path. Windows of cards and reads that copies may answer go their own ways before the decision.
#include <fmt/format.h>

#include "window/window.hpp"

namespace farsum {
namespace {

// An accumulate of no_op does nothing, and its operand may be null.
bool does_nothing(const Operation& operation) {
  const bool changes_nothing =
      operation.bytes == 0 || (operation.kind == OperationKind::accumulate && operation.op == ops::Operator::no_op);
  return changes_nothing && !operation.notify;
}

// Release: the result is there; pairs with the acquire load of whoever tests the request.
void tell(RequestState* request) {
  if (request != nullptr) request->done.store(true, std::memory_order_release);
}

}  // namespace

Status Window::operate(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
  rules_.note_issued();
  if (target < size_ && posts_.awaits_post(target)) [[unlikely]] {
    if (completion == Completion::implicit) {
      if (PostEpochs::Kept kept = posts_.keep(operation, target); kept) return *std::move(kept);
    }
    if (Status status = posts_.await_post(target, call_name(operation.kind)); !status.is_ok()) return status;
  }
  return execute(operation, target, completion, request);
}

Status Window::check(const Operation& operation, std::uint32_t target, RegionRef& at) {
  const char* call = call_name(operation.kind);
  if (Status status = checks_.rank(call, target); !status.is_ok()) return status;
  if (!words_.includes(target) && !posts_.awaits_post(target)) {
    return {Code::sync,
            fmt::format("{}: outside an access epoch; begin one with farsum_fence, farsum_start, farsum_lock or "
                        "farsum_lock_all",
                        texts_.where(call, target))};
  }
  Status status = checks_.all(operation, target, at);
  if (cards_ == nullptr || !status.is_ok() || at.region == nullptr) return status;
  return cards_->check(operation, target, *at.region);
}

Status Window::execute(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
  RegionRef at;
  Status status = check(operation, target, at);
  if (!status.is_ok()) {
    status = explain(operation, target, std::move(status));
  } else if (does_nothing(operation)) {
    tell(request);
  } else if (cards_ != nullptr) {
    status = cards_->run({operation, target, at.region, completion, request});
  } else if (reads_ != nullptr && !is_here(target)) {
    status = run_with_copies(operation, target, std::move(at), completion, request);
  } else {
    status = run(operation, target, route(operation, target, std::move(at), completion), completion, request);
  }
  // It is noted where the operation failed, too: some of it may have happened.
  if (target < size_ && writes(operation.kind, operation.op)) note_change(target);
  return status;
}

// A rank that died while it changed its table exposes nothing any more.
Status Window::explain(const Operation& operation, std::uint32_t target, Status refused) const {
  if (!parts_.dynamic || refused.code() != Code::range) return refused;
  const std::string dead = name_the_dead(parts_.lock_agent.liveness, {parts_.ranks[target]});
  return dead.empty() ? std::move(refused)
                      : Status(Code::peer_failed, texts_.where(call_name(operation.kind), target) + dead);
}

Status Window::run_with_copies(const Operation& operation, std::uint32_t target, RegionRef at, Completion completion,
                               RequestState* request) {
  const bool may_answer = reads_->may_answer(operation, target, completion);
  if (may_answer && reads_->answer(operation, target)) {
    tell(request);
    return {};
  }
  Status status = run(operation, target, route(operation, target, std::move(at), completion), completion, request);
  if (may_answer && status.is_ok()) {
    reads_->note_sent(operation, target, completion);
    return status;
  }
  if (AnsweredReads::is_awaited(operation, completion)) parts_.hearing->hear();
  reads_->note_other(operation, target);
  return status;
}

void Window::count(const Operation& operation, std::uint32_t target, Path path) {
  if (path == Path::direct) return count_direct(views_[target], operation.bytes);
  const bool moves_twice =
      path == Path::caller && is_atomic(operation.kind) && !goes_as_messages(operation, path, is_here(target));
  count_other(views_[target], operation.bytes);
  parts_.counters->count(path, moves_twice ? 2 * operation.bytes : operation.bytes);
}

Status Window::run(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
                   RequestState* request) {
  if (Status status = completions_.settle_before(operation, target, route.path); !status.is_ok()) return status;
  count(operation, target, route.path);
  Status status;
  switch (route.path) {
    case Path::owner:
    case Path::offload:  // is a whole window's: see execute
      return owner_.run(operation, target, completion, request);
    case Path::aggregated:
      return gathered_->run(operation, target);
    case Path::direct:
      status = mapped_.run(operation, target, *route.at.region);
      break;
    case Path::attach:
      status = copied_.attach(operation, target, *route.at.region);
      break;
    case Path::caller:
      if (goes_as_messages(operation, route.path, is_here(target)))
        return owner_.run(operation, target, completion, request);
      status = is_here(target) ? copied_.caller(operation, target, *route.at.region)
                               : leases_->run({operation, target, route.at.region});
      break;
  }
  // What is left is of paths that are complete on return.
  note_stores(views_[target]);
  if (parts_.hearing != nullptr && tells_of_others(operation)) parts_.hearing->hear();
  if (!status.is_ok()) return status;
  if (operation.notify) notifications_.raise(target, operation.notify_slot);
  tell(request);
  return {};
}

// ---- single elements ----

bool Window::update_remote(std::uint32_t target, std::uint64_t offset, const void* element, ops::ElementType type,
                           ops::Operator op) {
  const std::uint64_t size = ops::size_of(type);
  if (target >= size_) return false;
  const TargetState& state = states_[target];
  if (state.remote_bytes < size || offset > state.remote_bytes - size || element == nullptr) return false;
  if (op == ops::Operator::scaled_sum || op == ops::Operator::no_op || !ops::legal(type, op)) return false;
  if (!words_.includes(target) || posts_.awaits_post(target) || remote_locks_.is_unsure(target)) return false;
  rules_.note_issued();
  const Update update{type, op, offset, static_cast<const std::byte*>(element), size, nullptr};
  const bool has_joined = gathered_ ? gathered_->try_add(update, target) : messages_.try_update(update, target);
  if (!has_joined) return false;
  note_change(target);
  if (reads_ != nullptr) [[unlikely]]
    reads_->note_change(target, offset, offset + size);
  parts_.counters->count(gathered_ ? Path::aggregated : Path::owner, size);
  return true;
}

bool Window::may_update_by_copy(std::uint32_t target, std::uint64_t offset, ops::ElementType type,
                                ops::Operator op) const {
  if (target >= size_) return false;
  const Region* region = states_[target].copied;
  const std::uint64_t bytes = ops::size_of(type);
  if (region == nullptr || region->bytes < bytes || offset > region->bytes - bytes) return false;
  if (op == ops::Operator::scaled_sum || !ops::legal(type, op)) return false;
  return words_.includes(target) && !posts_.awaits_post(target) && messages_.is_through(target);
}

Status Window::update_by_copy(std::uint32_t target, std::uint64_t offset, const ElementUpdate& element) {
  const bool swaps = element.compare != nullptr;
  const CopiedPath::Update update{swaps ? Reduction{element.type, ops::Operator::replace}
                                        : make_reduction(*parts_.kernels, element.type, element.op, nullptr, 0),
                                  element.compare, element.result != nullptr};
  const OperationKind kind = swaps                       ? OperationKind::compare_and_swap
                             : element.result != nullptr ? OperationKind::get_accumulate
                                                         : OperationKind::accumulate;
  rules_.note_issued();
  const std::uint64_t bytes = update.reduction.element_bytes();
  count_other(views_[target], bytes);
  parts_.counters->count(Path::attach, bytes);
  Status status = copied_.update_element(
      update, {call_name(kind), target, *states_[target].copied, offset, element.operand, element.result});
  note_stores(views_[target]);
  if (parts_.hearing != nullptr && tells_of_others(kind, element.op)) parts_.hearing->hear();
  if (writes(kind, element.op)) note_change(target);
  return status;
}

}  // namespace farsum
