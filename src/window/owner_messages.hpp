// What travels from a window to the owners of its parts, and what comes back: operations, questions with their answers,
// the room that a peer has, and the failures that nobody has been told yet. Whoever waits for an owner takes in what it
// has answered here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"
#include "lockfree/lock_queue.hpp"
#include "progress/waiter.hpp"
#include "protocol/messages.hpp"
#include "protocol/origin/engine.hpp"
#include "window/hot_window.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call. Targets are ranks of the group.
class OwnerMessages {
 public:
  // All references outlive it.
  struct Needs {
    WindowId window = 0;
    std::uint32_t my_rank = 0;
    std::span<const Rank> ranks;  // of the job, by rank of the group
    OriginEngine& engine;
    Waiter& waiter;
    TargetView* views;  // of which it uses what is outstanding
    const WindowTexts& texts;
  };
  explicit OwnerMessages(const Needs& needs)
      : needs_(needs), asked_(std::make_unique<Outstanding[]>(needs.ranks.size())) {}

  // ---- operations: counted by what is outstanding in the target's view ----

  // False: nothing was done, for want of room.
  bool try_send(const Operation& operation, std::uint32_t target, RequestState* request) {
    return needs_.engine.submit(needs_.ranks[target], needs_.window, operation, outstanding(target), request);
  }
  bool try_update(const Update& update, std::uint32_t target) {
    return needs_.engine.submit_update(needs_.ranks[target], needs_.window, update, outstanding(target));
  }
  // Waits for room.
  Status send(const Operation& operation, std::uint32_t target, RequestState* request);
  struct Elements {
    ops::ElementType type;
    ops::Operator op;
    const std::byte* alpha;
    std::span<const std::uint64_t> offsets;
    std::span<const std::byte> packed;
  };
  Status send_elements(const Elements& elements, std::uint32_t target);
  // One that nobody waits for by itself: its answer is told, and what is outstanding is the caller's.
  bool try_fetch(const Operation& operation, std::uint32_t target, Outstanding& fetches, RequestState& told) {
    return needs_.engine.submit(needs_.ranks[target], needs_.window, operation, fetches, &told);
  }

  // ---- control messages ----

  // Its failure is told by the next flush, which also waits for it.
  Status tell(std::uint32_t target, wire::MessageKind kind) {
    return send_control(target, {.kind = kind}, nullptr, outstanding(target));
  }
  struct Question {
    wire::MessageKind kind;
    LockMode mode = LockMode::shared;
    unsigned more_flags = 0;
    std::uint32_t lock = 0;  // 0: the part's own
  };
  // Sends one whose answer await_answer waits for. `answer` is borrowed until then.
  Status ask(std::uint32_t target, const Question& question, RequestState& answer);
  // Where it fails the job is over, and nothing points at `answer` any more.
  Status await_answer(std::uint32_t target, const RequestState& answer, const char* call);

  // ---- waiting ----

  void take_replies(std::uint32_t target) { take_replies_of(needs_.ranks[target]); }
  // Of any rank of the job, which a lock of another window may have been asked of.
  void take_replies_of(Rank owner);
  // Waits until done(), which replies of the target bring about.
  template <class Done>
  Status wait(std::uint32_t target, Done&& done, const char* call) {
    const auto progress = [&] {
      take_replies(target);
      return done();
    };
    Status status = needs_.waiter.wait(needs_.waiter.own_events(), progress, call);
    // The job is over: nothing under way may still point at the program's buffers, or at an answer, when this returns.
    if (!status.is_ok()) fail_all();
    return status;
  }
  // Nothing is outstanding; or nothing that needs the program's buffers.
  bool is_through(std::uint32_t target) const {
    // Acquire pairs with the release in OriginEngine::finish_job.
    return needs_.views[target].outstanding.count.load(std::memory_order_acquire) == 0;
  }
  bool borrows_nothing(std::uint32_t target) const {
    // Acquire pairs with the release in OriginEngine::stop_borrowing.
    return needs_.views[target].outstanding.borrowing.load(std::memory_order_acquire) == 0;
  }
  // Passes through the mutex of the target's peer, as who finishes what it has asked for does.
  void pass_peer(std::uint32_t target) const { (void)needs_.engine.has_room(needs_.ranks[target]); }

  // ---- failures ----

  // What failed since it was last asked; then nothing has.
  Status take_failure(std::uint32_t target, const char* call);
  void note_failure(std::uint32_t target, const Status& status) {
    // Relaxed: whoever asks learns of the end by the count.
    if (!status.is_ok()) outstanding(target).failure.store(status.code(), std::memory_order_relaxed);
  }
  // What could not be sent, for want of memory.
  Status lacks_memory(std::uint32_t target, const char* what) const;
  // The job is over: nothing that is under way points at the program's buffers any more.
  void fail_all() { needs_.engine.fail_all(); }

 private:
  struct Control {
    wire::MessageKind kind;
    unsigned flags = 0;
    std::uint32_t slot = 0;
  };
  Outstanding& outstanding(std::uint32_t target) const { return needs_.views[target].outstanding; }
  Status send_control(std::uint32_t target, const Control& control, RequestState* request, Outstanding& outstanding);
  Status wait_for_room(std::uint32_t target);

  Needs needs_;
  std::unique_ptr<Outstanding[]> asked_;  // by target: the questions
};

}  // namespace farsum
