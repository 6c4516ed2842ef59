// Epochs towards targets of other nodes: what meets in shared memory on one node travels as a message to the target's
// agent. Whatever goes to several targets is sent to all before any is waited for.
#include <fmt/format.h>

#include "core/epoch_refusals.hpp"
#include "core/window.hpp"

namespace farsum {

bool Window::claim_remote(std::uint32_t target, std::int32_t from) {
  // Acquire: see open_epoch.
  return views_[target].open.compare_exchange_strong(from, epoch_changing, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
}

Status Window::tell(std::uint32_t target, wire::MessageKind kind, LockMode mode, RequestState* request,
                    Outstanding& outstanding) {
  wire::MessageHeader header;
  header.kind = kind;
  header.window = parts_.id;
  header.offset = parts_.my_rank;
  if (mode == LockMode::exclusive) header.flags = wire::flag_exclusive;
  while (!parts_.engine->submit_control(parts_.ranks[target], header, {}, outstanding, request)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  return {};
}

Status Window::ask(std::uint32_t target, wire::MessageKind kind, LockMode mode) {
  Detail& detail = details_[target];
  // Relaxed: nobody looks before the message is sent.
  detail.answer.done.store(false, std::memory_order_relaxed);
  detail.answer.code.store(Code::ok, std::memory_order_relaxed);
  return tell(target, kind, mode, &detail.answer, detail.asked);
}

Status Window::await_answer(std::uint32_t target, const char* call) {
  const RequestState& answer = details_[target].answer;
  const Rank owner = parts_.ranks[target];
  Status status = parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        parts_.engine->progress(owner);
        // Acquire pairs with the release in OriginEngine::finish_job.
        return answer.done.load(std::memory_order_acquire);
      },
      call);
  if (!status.is_ok()) {
    // The job is over: nothing under way may still point at the answer when it is asked for again.
    parts_.engine->fail_all();
    return status;
  }
  return answer_status(target, call, answer.code.load(std::memory_order_relaxed));
}

Status Window::answer_status(std::uint32_t target, const char* call, Code code) const {
  if (code == Code::ok) return {};
  return {code, fmt::format("{}: the owner's agent answered: {}{}", where(call, target), explain_code(code),
                            code == Code::peer_failed ? name_the_dead(parts_.lock_agent.liveness, parts_.ranks) : "")};
}

Status Window::ask_to_end(std::uint32_t target, wire::MessageKind kind, LockMode mode) {
  if (aggregates_) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  return ask(target, kind, mode);
}

Status Window::await_end(std::uint32_t target, const char* call) {
  details_[target].ordered.store(false, std::memory_order_relaxed);
  Status operations = wait_outstanding(target, call);
  Status end = await_answer(target, call);
  return operations.is_ok() ? std::move(end) : std::move(operations);
}

Status Window::lock_remote(std::uint32_t target, LockMode mode) {
  {
    const std::lock_guard lock(sync_mutex_);
    const char* why = why_no_lock(target);
    if (why == nullptr && !claim_remote(target, no_epoch)) why = held_already;
    if (why != nullptr) return refuse_lock(target, why);
  }
  Status status = ask(target, wire::MessageKind::lock, mode);
  if (status.is_ok()) status = await_answer(target, "farsum_lock");
  if (!status.is_ok()) close_epoch(target);
  return status;
}

// A failed operation does not keep the lock: its end was under way with the operation.
Status Window::unlock_remote(std::uint32_t target, std::int32_t open) {
  if (!claim_remote(target, open)) return not_held(target);
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  if (Status status = ask_to_end(target, wire::MessageKind::unlock, mode); !status.is_ok()) {
    views_[target].open.store(open, std::memory_order_relaxed);
    return status;
  }
  Status status = await_end(target, "farsum_unlock");
  close_epoch(target);
  return status;
}

}  // namespace farsum
