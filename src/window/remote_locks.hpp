// Locks of ranks of other nodes: asked for by a message and not waited for, so that a little that comes under a lock
// travels behind it; and the locks of their mutexes. What the words of the epochs say is the caller's business.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "memory/atomicity.hpp"
#include "progress/waiter.hpp"
#include "protocol/operation.hpp"
#include "window/owner_messages.hpp"
#include "window/target_state.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Locks are asked for and ended by who owns the target's epoch; any thread may operate under one, and ask for mutexes.
class RemoteLocks {
 public:
  // All references outlive it.
  struct Needs {
    OwnerMessages& messages;
    Waiter& waiter;
    const LockAgent& agent;       // of this process's threads
    std::span<const Rank> ranks;  // of the job, by rank of the group
    TargetState* states;          // of which it writes lock_is_unsure
    const WindowTexts& texts;
  };
  explicit RemoteLocks(const Needs& needs) : needs_(needs), asked_(std::make_unique<Asked[]>(needs.ranks.size())) {}

  // Does not wait for the grant: what is issued behind it waits at the owner. Nor does the lock leave by itself: a
  // little behind it, and the unlock, are one frame. Throws bad_alloc, and has done nothing.
  Status ask(std::uint32_t target, LockMode mode);
  // Asks for the lock only if it is free; the answer is `pending` where it is not.
  Status ask_at_once(std::uint32_t target, const char* call) { return ask_shared(target, wire::flag_at_once, call); }
  Status ask_in_turn(std::uint32_t target, const char* call) { return ask_shared(target, 0, call); }
  // What the last question for the lock was answered.
  Status await_granted(std::uint32_t target, const char* call) {
    return needs_.messages.await_answer(target, asked_[target].granted, call);
  }

  // Whether nobody knows yet that the lock of the epoch is held. Relaxed: for the thread that has asked, or for those
  // that the program orders after it; one that finds the lock unsure when it is not any more loses nothing.
  bool is_unsure(std::uint32_t target) const {
    return needs_.states[target].lock_is_unsure.load(std::memory_order_relaxed);
  }
  // Waits until the lock of the epoch is held, where nobody knows yet.
  Status learn(std::uint32_t target, const char* call);
  // Sends an operation while that is so, as far as there may be more behind the lock: else learns of it first, and
  // leaves the sending to the caller.
  Status send_behind(const Operation& operation, std::uint32_t target, RequestState* request, bool& sent);
  // The epoch has ended, or did not begin.
  void end(std::uint32_t target) {
    needs_.states[target].lock_is_unsure.store(false, std::memory_order_relaxed);
    forget(target);
  }

  // Before this thread takes a lock: waits for those that it has asked other nodes for, where there are any.
  bool has_asked() const { return needs_.agent.asked != nullptr && needs_.agent.asked->any(); }
  Status await_asked(const char* call);

  // Takes or gives back the lock of a mutex. Any thread may call.
  Status ask_of_mutex(std::uint32_t target, wire::MessageKind kind, std::uint32_t lock, const char* call);

 private:
  struct Asked {
    RequestState granted;
    std::atomic<std::uint64_t> bytes_behind{0};  // were sent while the lock was unsure
  };
  // It throws nothing.
  Status ask_shared(std::uint32_t target, unsigned flags, const char* call);
  void forget(std::uint32_t target) {
    if (has_asked()) needs_.agent.asked->forget(asked_[target].granted);
  }

  Needs needs_;
  std::unique_ptr<Asked[]> asked_;  // by target
};

}  // namespace farsum
