#include "window/completions.hpp"

#include <new>
#include <utility>

#include "window/route.hpp"

namespace farsum {

// Waits until done(), which replies of the target bring about.
template <class Done>
Status Completions::wait_for_replies(std::uint32_t target, Done&& done, const char* call) {
  if (!done()) {
    const bool has_copies = needs_.reads != nullptr && !is_here(target);
    const std::size_t fetches = has_copies ? needs_.reads->end_round(target) : 0;
    if (Status status = needs_.messages.wait(target, done, call); !status.is_ok()) return status;
    // Blocks are right behind what was waited for, and what is read next may be in them.
    if (Status status = fetches != 0 ? needs_.reads->await_fetches(target, call) : Status(); !status.is_ok())
      return status;
  }
  return needs_.messages.take_failure(target, call);
}

Status Completions::await_outstanding(std::uint32_t target, const char* call) {
  if (needs_.cards != nullptr) [[unlikely]]
    needs_.cards->settle(target, call);
  return wait_for_replies(
      target, [&] { return needs_.messages.is_through(target); }, call);
}

Status Completions::flush(std::uint32_t target, const char* call) {
  if (Status status = send_gathered(target); !status.is_ok()) return status;
  needs_.order.clear(target);
  if (Status status = await_outstanding(target, call); !status.is_ok()) return status;
  flush_fence();
  return {};
}

Status Completions::flush_all(const char* call) {
  // Everything is sent before anything is waited for.
  if (needs_.gathered != nullptr) {
    for (std::uint32_t target = 0; target < needs_.size; ++target) {
      if (Status status = needs_.gathered->send(target); !status.is_ok()) return status;
    }
  }
  settle_cards(call);
  Status first;
  for (std::uint32_t target = 0; target < needs_.size; ++target) {
    needs_.order.clear(target);
    Status status = await_outstanding(target, call);
    if (first.is_ok() && !status.is_ok()) first = std::move(status);
  }
  flush_fence();
  return first;
}

// What was gathered is a copy. At a target of this node operations may take several paths, on which a later one could
// overtake what is only on its way; there a program that knows its buffers free has always found everything done.
Status Completions::await_buffers(std::uint32_t target, const char* call) {
  if (is_here(target)) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
    return await_outstanding(target, call);
  }
  if (needs_.cards != nullptr) {
    if (Status status = needs_.cards->await_buffers(target, call); !status.is_ok()) return status;
  }
  return wait_for_replies(
      target, [&] { return needs_.messages.borrows_nothing(target); }, call);
}

Status Completions::settle_before(const Operation& operation, std::uint32_t target, Path path) {
  const bool must_order = needs_.order.is_marked(target);
  if (path != Path::aggregated) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  if (goes_as_messages(operation, path, is_here(target))) return {};  // one ring, one order
  if (!must_order && !(needs_.keeps_order && is_atomic(operation.kind))) return {};
  return needs_.messages.is_through(target) ? Status() : await_outstanding(target, call_name(operation.kind));
}

Status Completions::ask_to_end(std::uint32_t target, wire::MessageKind kind, LockMode mode) {
  // A message may overtake what cards do.
  if (needs_.cards != nullptr) needs_.cards->settle(target, "the end of an epoch");
  try {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
    return needs_.messages.ask(target, {kind, mode}, ends_[target]);
  } catch (const std::bad_alloc&) {
    return needs_.messages.lacks_memory(target, "the end of an epoch");
  }
}

Status Completions::await_end(std::uint32_t target, const char* call) {
  needs_.order.clear(target);
  Status first = needs_.locks.learn(target, call);
  Status operations = await_outstanding(target, call);
  if (first.is_ok()) first = std::move(operations);
  Status end = needs_.messages.await_answer(target, ends_[target], call);
  return first.is_ok() ? std::move(end) : std::move(first);
}

}  // namespace farsum
