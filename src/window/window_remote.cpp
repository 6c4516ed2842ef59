// Epochs towards targets of other nodes: what meets in shared memory on one node travels as a message to the target's
// agent. Whatever goes to several targets is sent to all before any is waited for.
#include <new>
#include <optional>

#include <fmt/format.h>

#include "os/thread_mark.hpp"
#include "window/epoch_refusals.hpp"
#include "window/window.hpp"

namespace farsum {

bool Window::claim_by_swap(std::uint32_t target, std::int32_t from) {
  // Acquire: see open_epoch.
  return views_[target].open.compare_exchange_strong(from, epoch_changing, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
}

Status Window::tell(std::uint32_t target, wire::MessageKind kind, std::uint8_t flags, RequestState* request,
                    Outstanding& outstanding, std::uint32_t slot) {
  wire::MessageHeader header;
  header.kind = kind;
  header.window = parts_.id;
  header.offset = parts_.my_rank;
  header.flags = flags;
  header.slot = slot;
  const Rank owner = parts_.ranks[target];
  const auto send = [&] { return parts_.engine->submit_control(owner, header, {}, outstanding, request); };
  if (send()) return {};
  // It tries again and again, not when there is room: locks are kept back for other reasons, too, which replies end as
  // well.
  bool is_sent = false;
  return parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        take_replies(owner);
        return is_sent = is_sent || send();
      },
      "waiting for room in the target's mailbox");
}

Status Window::ask(std::uint32_t target, wire::MessageKind kind, LockMode mode, RequestState& answer,
                   std::uint8_t more_flags) {
  // Relaxed: nobody looks before the message is sent but AskedLocks, which has set it so under its mutex.
  answer.done.store(false, std::memory_order_relaxed);
  answer.code.store(Code::ok, std::memory_order_relaxed);
  const unsigned of_mode = mode == LockMode::exclusive ? wire::flag_exclusive : 0;
  return tell(target, kind, static_cast<std::uint8_t>(of_mode | more_flags), &answer, details_[target].asked);
}

Status Window::await_answer(std::uint32_t target, const RequestState& answer, const char* call) {
  const Rank owner = parts_.ranks[target];
  Status status = parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        take_replies(owner);
        // Acquire pairs with the release in OriginEngine::finish_job.
        return answer.done.load(std::memory_order_acquire);
      },
      call);
  if (!status.is_ok()) {
    // The job is over: nothing under way may still point at the answer when it is asked for again.
    parts_.engine->fail_all();
    return status;
  }
  return texts_.answered(target, call, answer.code.load(std::memory_order_relaxed));
}

Status Window::ask_to_end(std::uint32_t target, wire::MessageKind kind, LockMode mode) {
  // A message may overtake what cards do.
  settle_card(target, "the end of an epoch");
  if (hot_parts_.aggregates) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  return ask(target, kind, mode, details_[target].answer);
}

Status Window::await_end(std::uint32_t target, const char* call) {
  details_[target].ordered.store(false, std::memory_order_relaxed);
  Status first = learn_of_lock(target, call);
  Status operations = wait_outstanding(target, call);
  if (first.is_ok()) first = std::move(operations);
  Status end = await_answer(target, details_[target].answer, call);
  return first.is_ok() ? std::move(end) : std::move(first);
}

// ---- locks ----

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

// Does not wait for the grant: what is issued behind it waits at the owner. Nor does the lock leave by itself: a little
// behind it, and the unlock, are one frame.
Status Window::lock_remote(std::uint32_t target, LockMode mode) {
  {
    const std::lock_guard lock(sync_mutex_);
    const char* why = why_no_lock(target);
    if (why == nullptr && !claim_by_swap(target, no_epoch)) why = held_already;
    if (why != nullptr) return refuse_lock(target, why);
  }
  Detail& detail = details_[target];
  Status status;
  try {
    parts_.lock_agent.asked->add(detail.granted, parts_.ranks[target]);
    status = ask(target, wire::MessageKind::lock, mode, detail.granted);
  } catch (const std::bad_alloc&) {
    close_epoch(target);
    throw;
  }
  if (!status.is_ok()) {
    close_epoch(target);
    return status;
  }
  // Relaxed, here and below: for this thread, or for those that the program orders after it; one that finds the lock
  // unsure when it is not any more loses nothing.
  detail.bytes_behind.store(0, std::memory_order_relaxed);
  detail.lock_is_unsure.store(true, std::memory_order_relaxed);
  return {};
}

// Waits for the locks that this thread has asked for: see AskedLocks. What becomes of one that is refused is told by
// what comes under it.
Status Window::await_asked_locks(const char* call) {
  AskedLocks& asked = *parts_.lock_agent.asked;
  const std::uint64_t thread = os::thread_mark();
  std::optional<Rank> last;
  Status status = parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        const std::optional<Rank> owner = asked.awaited(thread);
        if (!owner) return true;
        last = owner;
        take_replies(*owner);
        return !asked.awaited(thread);
      },
      call);
  if (!status.is_ok() || !last) return status;
  const std::string dead = name_the_dead(parts_.lock_agent.liveness, {*last});
  return dead.empty() ? std::move(status)
                      : Status(Code::peer_failed, fmt::format("{}: the lock that was asked for before{}", call, dead));
}

Status Window::learn_of_lock(std::uint32_t target, const char* call) {
  Detail& detail = details_[target];
  if (!detail.lock_is_unsure.load(std::memory_order_relaxed)) return {};
  Status status = await_answer(target, detail.granted, call);
  // Every operation under one that was refused is told so, until it is given back.
  if (status.is_ok()) detail.lock_is_unsure.store(false, std::memory_order_relaxed);
  return status;
}

Status Window::send_behind_lock(const Operation& operation, std::uint32_t target, RequestState* request, bool& sent) {
  Detail& detail = details_[target];
  const std::uint64_t room = room_of(operation);
  const std::uint64_t behind = detail.bytes_behind.fetch_add(room, std::memory_order_relaxed) + room;
  if (behind <= most_behind_lock && !detail.granted.done.load(std::memory_order_acquire)) {
    Operation waiting = operation;
    waiting.may_wait = true;
    waiting.leaves_with_end = behind <= most_with_end;
    sent = parts_.engine->submit(parts_.ranks[target], parts_.id, waiting, views_[target].outstanding, request);
  }
  return sent ? Status() : learn_of_lock(target, call_name(operation.kind));
}

// A failed operation does not keep the lock: its end was under way with the operation.
Status Window::unlock_remote(std::uint32_t target, std::int32_t open) {
  if (!claim_by_swap(target, open)) return not_held(target);
  const LockMode mode = open == locked_exclusive ? LockMode::exclusive : LockMode::shared;
  if (Status status = ask_to_end(target, wire::MessageKind::unlock, mode); !status.is_ok()) {
    views_[target].open.store(open, std::memory_order_relaxed);
    return status;
  }
  Status status = await_end(target, "farsum_unlock");
  details_[target].lock_is_unsure.store(false, std::memory_order_relaxed);
  close_epoch(target);
  return status;
}

// ---- mutexes ----

// The answer is the caller's own: threads may ask for several mutexes of a rank at once.
Status Window::ask_of_mutex(std::uint32_t target, wire::MessageKind kind, std::uint32_t lock, const char* call) {
  RequestState answer;
  Status status = tell(target, kind, wire::flag_exclusive, &answer, details_[target].asked, lock);
  return status.is_ok() ? await_answer(target, answer, call) : std::move(status);
}

}  // namespace farsum
