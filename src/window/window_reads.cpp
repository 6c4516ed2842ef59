// Reads of other nodes' memory in windows that let them be answered from copies (read_ahead.hpp).
#include "window/window.hpp"

namespace farsum {

bool Window::may_answer_reads() const {
  return parts_.read_age_ns != 0 && parts_.hearing != nullptr && !parts_.dynamic && !hot_parts_.aggregates &&
         parts_.cards.rdma == nullptr && !remote_targets_.empty();
}

Status Window::operate_with_copies(const Operation& operation, std::uint32_t target, RegionRef at,
                                   Completion completion, RequestState* request) {
  // A lock that was only asked for may be granted after what others do under it. Relaxed: as in run_owner().
  const bool is_awaited = completion == Completion::blocking && operation.kind != OperationKind::get;
  const bool may_answer = read_ahead_->is_read(operation) && !is_awaited &&
                          !details_[target].lock_is_unsure.load(std::memory_order_relaxed);
  if (may_answer && read_ahead_->answer(target, operation)) {
    // Release: the result is there; pairs with the acquire load of whoever tests the request.
    if (request != nullptr) request->done.store(true, std::memory_order_release);
    return {};
  }
  Status status =
      carry_out(operation, target, route(operation, target, std::move(at), completion), completion, request);
  if (may_answer && status.is_ok()) {
    read_ahead_->sent(target, operation);
    if (completion != Completion::implicit) end_round_of_reads(target);
    return {};
  }
  // Copies are spoiled where the operation failed, too, for some of it may have happened; and by reads that are sent
  // whatever is here, for what they find may be newer.
  if (is_awaited) parts_.hearing->hear();
  const ops::Extent extent = operation.target_layout.measured(1).extent;
  read_ahead_->changed(target, operation.offset + static_cast<std::uint64_t>(extent.low),
                       operation.offset + static_cast<std::uint64_t>(extent.high));
  return status;
}

std::size_t Window::end_round_of_reads(std::uint32_t target) {
  return read_ahead_->end_round(target, [&](const Operation& block, Outstanding& fetches, RequestState& told) {
    return parts_.engine->submit(parts_.ranks[target], parts_.id, block, fetches, &told);
  });
}

Status Window::await_fetches(std::uint32_t target, const char* call) {
  const std::atomic<std::uint64_t>& left = read_ahead_->fetches(target).count;
  // Acquire pairs with the release in OriginEngine::finish_job.
  const auto done = [&left] { return left.load(std::memory_order_acquire) == 0; };
  return done() ? Status() : wait_for_answers(target, done, call);
}

// After it nothing points into the copies any more.
Status Window::await_all_fetches(const char* call) {
  Status first;
  for (std::size_t i = 0; read_ahead_ != nullptr && i < remote_targets_.size(); ++i) {
    Status status = await_fetches(remote_targets_[i], call);
    if (first.is_ok()) first = std::move(status);
    // The thread that counted the last one down tells its block behind that, under the mutex which this passes through.
    (void)parts_.engine->has_room(parts_.ranks[remote_targets_[i]]);
  }
  return first;
}

}  // namespace farsum
