#include "window/remote_locks.hpp"

#include <new>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "os/thread_mark.hpp"
#include "window/asked_locks.hpp"

namespace farsum {
namespace {

// So much may be under way to a target before its lock is known to be held: the owner keeps it.
constexpr std::uint64_t most_behind_lock = 8192;
// With more behind it the lock had better be on its way.
constexpr std::uint64_t most_with_end = 1024;

std::uint64_t room_of(const Operation& operation) {
  constexpr std::uint64_t of_the_rest = 2 * sizeof(wire::MessageHeader);
  const std::uint64_t sides = operation.kind == OperationKind::compare_and_swap ? 3
                              : operation.kind == OperationKind::get_accumulate ? 2
                                                                                : 1;
  return of_the_rest + sides * operation.bytes + 16 * operation.target_layout.pieces().size();
}

}  // namespace

Status RemoteLocks::ask(std::uint32_t target, LockMode mode) {
  Asked& asked = asked_[target];
  Status status;
  try {
    needs_.agent.asked->add(asked.granted, needs_.ranks[target]);
    status = needs_.messages.ask(target, {wire::MessageKind::lock, mode}, asked.granted);
  } catch (const std::bad_alloc&) {
    forget(target);
    throw;
  }
  if (!status.is_ok()) {
    forget(target);
    return status;
  }
  // Relaxed: see is_unsure.
  asked.bytes_behind.store(0, std::memory_order_relaxed);
  needs_.states[target].lock_is_unsure.store(true, std::memory_order_relaxed);
  return {};
}

// The answers of those that were asked before are still to be awaited: it throws nothing.
Status RemoteLocks::ask_shared(std::uint32_t target, unsigned flags, const char* call) {
  try {
    return needs_.messages.ask(target, {wire::MessageKind::lock, LockMode::shared, flags}, asked_[target].granted);
  } catch (const std::bad_alloc&) {
    return {Code::no_memory, needs_.texts.where(call, target) + ": there was no memory left to ask for its lock"};
  }
}

Status RemoteLocks::learn(std::uint32_t target, const char* call) {
  if (!is_unsure(target)) return {};
  Status status = await_granted(target, call);
  // Every operation under one that was refused is told so, until it is given back.
  if (status.is_ok()) needs_.states[target].lock_is_unsure.store(false, std::memory_order_relaxed);
  return status;
}

Status RemoteLocks::send_behind(const Operation& operation, std::uint32_t target, RequestState* request, bool& sent) {
  Asked& asked = asked_[target];
  const std::uint64_t room = room_of(operation);
  // Relaxed: see is_unsure.
  const std::uint64_t behind = asked.bytes_behind.fetch_add(room, std::memory_order_relaxed) + room;
  if (behind <= most_behind_lock && !asked.granted.done.load(std::memory_order_acquire)) {
    Operation waiting = operation;
    waiting.may_wait = true;
    waiting.leaves_with_end = behind <= most_with_end;
    sent = needs_.messages.try_send(waiting, target, request);
  }
  return sent ? Status() : learn(target, call_name(operation.kind));
}

// Waits for the locks that this thread has asked for: see AskedLocks. What becomes of one that is refused is told by
// what comes under it.
Status RemoteLocks::await_asked(const char* call) {
  AskedLocks& asked = *needs_.agent.asked;
  const std::uint64_t thread = os::thread_mark();
  std::optional<Rank> last;
  Status status = needs_.waiter.wait(
      needs_.waiter.own_events(),
      [&] {
        const std::optional<Rank> owner = asked.awaited(thread);
        if (!owner) return true;
        last = owner;
        needs_.messages.take_replies_of(*owner);
        return !asked.awaited(thread);
      },
      call);
  if (!status.is_ok() || !last) return status;
  const std::string dead = name_the_dead(needs_.agent.liveness, {*last});
  return dead.empty() ? std::move(status)
                      : Status(Code::peer_failed, fmt::format("{}: the lock that was asked for before{}", call, dead));
}

// The answer is the caller's own: threads may ask for several mutexes of a rank at once.
Status RemoteLocks::ask_of_mutex(std::uint32_t target, wire::MessageKind kind, std::uint32_t lock, const char* call) {
  RequestState answer;
  Status status = needs_.messages.ask(target, {.kind = kind, .mode = LockMode::exclusive, .lock = lock}, answer);
  return status.is_ok() ? needs_.messages.await_answer(target, answer, call) : std::move(status);
}

}  // namespace farsum
