#include "window/answered_reads.hpp"

#include <atomic>

namespace farsum {

// Copies are spoiled where the operation failed, too, for some of it may have happened; and by reads that are sent
// whatever is here, for what they find may be newer.
void AnsweredReads::note_other(const Operation& operation, std::uint32_t target) {
  const ops::Extent extent = operation.target_layout.measured(1).extent;
  ahead_.changed(target, operation.offset + static_cast<std::uint64_t>(extent.low),
                 operation.offset + static_cast<std::uint64_t>(extent.high));
}

std::size_t AnsweredReads::end_round(std::uint32_t target) {
  return ahead_.end_round(target, [&](const Operation& block, Outstanding& fetches, RequestState& told) {
    return messages_.try_fetch(block, target, fetches, told);
  });
}

Status AnsweredReads::await_fetches(std::uint32_t target, const char* call) {
  const std::atomic<std::uint64_t>& left = ahead_.fetches(target).count;
  // Acquire pairs with the release in OriginEngine::finish_job.
  const auto done = [&left] { return left.load(std::memory_order_acquire) == 0; };
  return done() ? Status() : messages_.wait(target, done, call);
}

Status AnsweredReads::await_all_fetches(const char* call) {
  Status first;
  for (const std::uint32_t target : targets_) {
    Status status = await_fetches(target, call);
    if (first.is_ok()) first = std::move(status);
    // The thread that counted the last one down tells its block behind that, under the mutex which this passes through.
    messages_.pass_peer(target);
  }
  return first;
}

}  // namespace farsum
