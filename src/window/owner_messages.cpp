#include "window/owner_messages.hpp"

namespace farsum {

// ---- operations ----

Status OwnerMessages::send(const Operation& operation, std::uint32_t target, RequestState* request) {
  while (!try_send(operation, target, request)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  return {};
}

Status OwnerMessages::send_elements(const Elements& elements, std::uint32_t target) {
  while (!needs_.engine.submit_scatter(needs_.ranks[target], needs_.window, elements.type, elements.op, elements.alpha,
                                       elements.offsets, elements.packed, outstanding(target))) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  return {};
}

// ---- control messages ----

Status OwnerMessages::send_control(std::uint32_t target, const Control& control, RequestState* request,
                                   Outstanding& outstanding) {
  wire::MessageHeader header;
  header.kind = control.kind;
  header.window = needs_.window;
  header.offset = needs_.my_rank;
  header.flags = static_cast<std::uint8_t>(control.flags);
  header.slot = control.slot;
  const Rank owner = needs_.ranks[target];
  const auto send = [&] { return needs_.engine.submit_control(owner, header, {}, outstanding, request); };
  if (send()) return {};
  // It tries again and again, not when there is room: locks are kept back for other reasons, too, which replies end as
  // well.
  bool is_sent = false;
  return needs_.waiter.wait(
      needs_.waiter.own_events(),
      [&] {
        take_replies(target);
        return is_sent = is_sent || send();
      },
      "waiting for room in the target's mailbox");
}

Status OwnerMessages::ask(std::uint32_t target, const Question& question, RequestState& answer) {
  // Relaxed: nobody looks before the message is sent but AskedLocks, which has set it so under its mutex.
  answer.done.store(false, std::memory_order_relaxed);
  answer.code.store(Code::ok, std::memory_order_relaxed);
  const unsigned of_mode = question.mode == LockMode::exclusive ? wire::flag_exclusive : 0;
  return send_control(target, {question.kind, of_mode | question.more_flags, question.lock}, &answer, asked_[target]);
}

Status OwnerMessages::await_answer(std::uint32_t target, const RequestState& answer, const char* call) {
  // Acquire pairs with the release in OriginEngine::finish_job.
  Status status = wait(
      target, [&answer] { return answer.done.load(std::memory_order_acquire); }, call);
  if (!status.is_ok()) return status;
  return needs_.texts.answered(target, call, answer.code.load(std::memory_order_relaxed));
}

// ---- waiting ----

void OwnerMessages::take_replies_of(Rank owner) {
  if (needs_.engine.progress(owner) != 0) needs_.waiter.note_come();
}

// Back-pressure: sleeps until a reply has made room.
Status OwnerMessages::wait_for_room(std::uint32_t target) {
  return needs_.waiter.wait(
      needs_.waiter.own_events(),
      [&] {
        take_replies(target);
        return needs_.engine.has_room(needs_.ranks[target]);
      },
      "waiting for room in the target's mailbox");
}

// ---- failures ----

Status OwnerMessages::lacks_memory(std::uint32_t target, const char* what) const {
  return {Code::no_memory, needs_.texts.where(what, target) + ": there was no memory left to send it"};
}

Status OwnerMessages::take_failure(std::uint32_t target, const char* call) {
  Outstanding& of_target = outstanding(target);
  if (of_target.failure.load(std::memory_order_relaxed) == Code::ok) return {};
  const Code code = of_target.failure.exchange(Code::ok, std::memory_order_relaxed);
  return needs_.texts.answered(target, call, code, "an earlier operation failed");
}

}  // namespace farsum
