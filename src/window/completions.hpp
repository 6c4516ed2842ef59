// When operations are complete: what was gathered is sent, what cards were asked for is settled, and what is under way
// is waited for, in that order. Flushes and the ends of epochs come through here; whether an epoch allows them is known
// before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "protocol/operation.hpp"
#include "protocol/window_shared.hpp"
#include "window/answered_reads.hpp"
#include "window/executor.hpp"
#include "window/gathered_updates.hpp"
#include "window/owner_messages.hpp"
#include "window/remote_locks.hpp"
#include "window/target_state.hpp"

namespace farsum {

// Any thread may call.
class Completions {
 public:
  // All outlive it.
  struct Needs {
    std::uint32_t size = 0;              // of the group
    std::span<const RankWindow> shared;  // of ranks of this node
    OwnerMessages& messages;
    RemoteLocks& locks;
    OrderMarks& order;
    GatheredUpdates* gathered = nullptr;  // null: nothing is gathered
    AnsweredReads* reads = nullptr;       // null: every read asks its target
    Executor* cards = nullptr;            // null: the window is not for cards
    bool keeps_order = true;              // of atomics on one location
  };
  explicit Completions(const Needs& needs) : needs_(needs), ends_(std::make_unique<RequestState[]>(needs.size)) {}

  // Everything issued to the target is in its memory.
  Status flush(std::uint32_t target, const char* call);
  Status flush_all(const char* call);
  // The buffers of all that was issued to the target are the program's again.
  Status await_buffers(std::uint32_t target, const char* call);
  // Keeps the order of atomics on one location when the path changes: what travels as a message, or is still gathered,
  // comes first.
  Status settle_before(const Operation& operation, std::uint32_t target, Path path);

  // What cards were asked for takes effect before anything that follows.
  void settle_cards(const char* call) {
    if (needs_.cards != nullptr) [[unlikely]]
      needs_.cards->settle_all(call);
  }
  // Sends what ends the epoch at a target of another node, right behind the operations. With await_end it has ended,
  // whatever became of them. By who owns the epoch. Where it cannot be asked, for want of memory, it says so.
  Status ask_to_end(std::uint32_t target, wire::MessageKind kind, LockMode mode);
  Status await_end(std::uint32_t target, const char* call);

  Status await_all_fetches(const char* call) {
    return needs_.reads == nullptr ? Status() : needs_.reads->await_all_fetches(call);
  }

 private:
  bool is_here(std::uint32_t target) const { return needs_.shared[target].is_here(); }
  Status send_gathered(std::uint32_t target) {
    return needs_.gathered == nullptr ? Status() : needs_.gathered->send(target);
  }
  Status await_outstanding(std::uint32_t target, const char* call);
  template <class Done>
  Status wait_for_replies(std::uint32_t target, Done&& done, const char* call);

  Needs needs_;
  std::unique_ptr<RequestState[]> ends_;  // by target: the answer to what ends its epoch
};

}  // namespace farsum
