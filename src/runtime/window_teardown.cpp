#include "runtime/window_teardown.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace farsum {

void WindowTeardown::note_thread() {
  const MutexGuard lock(mutex_);
  const std::thread::id me = std::this_thread::get_id();
  if (thread_seen_ == std::thread::id()) thread_seen_ = me;
  if (thread_seen_ != me) parts_.circle.take_out();
}

Status WindowTeardown::prepare_free(WindowObject& object, const char* call) {
  if (object.prepared) return {Code::sync, fmt::format("{}: the window is being freed already", call)};
  note_thread();
  // What this rank throws (it finds no memory) is told to the others first.
  Status mine;
  std::exception_ptr thrown;
  try {
    mine = object.window->settle(call);
    tell_traffic(object);
  } catch (...) {
    thrown = std::current_exception();
  }
  Teardown::Answer answer;
  const Code said = thrown != nullptr ? Code::no_memory : mine.code();
  if (Status status = agree_to_part(object, said, call, answer); !status.is_ok()) return status;
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (!mine.is_ok()) return mine;
  if (answer.code == Code::no_memory)
    return {Code::no_memory, fmt::format("{}: rank {} of the group has no memory left", call, answer.rank)};
  if (answer.code != Code::ok) {
    return {Code::pending,
            fmt::format("{}: rank {} of the group has an epoch or a lock open on the window, or an operation failed",
                        call, answer.rank)};
  }
  object.prepared = true;
  object.left_circle = !answer.all_came;
  object.window->close();
  if (answer.all_came && object.some_promoted) turn_back_in_quiet(object, call);
  return {};
}

// Circles of ranks that free in different orders are seen within a node only; over nodes a free waits for all.
Status WindowTeardown::agree_to_part(WindowObject& object, Code mine, const char* call, Teardown::Answer& answer) {
  if (object.group->places().is_one_node()) return object.teardown->agree(mine, parts_.circle, call, answer);
  std::vector<Code>& all = object.teardown_answers;
  if (Status status =
          object.team->allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), call);
      !status.is_ok()) {
    return status;
  }
  const auto unready = std::find_if(all.begin(), all.end(), [](Code code) { return code != Code::ok; });
  if (unready == all.end()) return {};
  answer.code = *unready;
  answer.rank = static_cast<std::uint32_t>(unready - all.begin());
  return {};
}

// What this rank has done to the others' parts, before it agrees that the window goes.
void WindowTeardown::tell_traffic(WindowObject& object) {
  if (!object.counts_traffic) return;
  // It is told once: a window whose freeing is refused is seldom used again.
  object.counts_traffic = false;
  const Window::Parts& parts = object.window->parts();
  for (std::uint32_t target = 0; target < parts.ranks.size(); ++target) {
    if (target == parts.my_rank || !parts.shared[target].is_here()) continue;
    const Traffic traffic = object.window->traffic_to(target);
    if (traffic.operations == 0) continue;
    parts.shared[target].head().worth_ns.fetch_add(PromotionBalance::worth_ns(traffic.operations, traffic.bytes),
                                                   std::memory_order_relaxed);
  }
}

// Turns back the memory of a window that all ranks have agreed to free: between two meetings each rank of this node is
// in here and none runs another runtime, as where a window is made. Where one has left a circle, which all see alike,
// the memory turns back when the window departs.
void WindowTeardown::turn_back_in_quiet(WindowObject& object, const char* call) {
  ThreadWaiter::Quiet quiet(parts_.waiter);
  quiet.begin();
  const bool has_circles = object.group->places().is_one_node();
  const auto meet = [&](Teardown::Answer& answer) {
    return has_circles ? object.teardown->agree(Code::ok, parts_.circle, call, answer)
                       : object.team->node().barrier(call);
  };
  Teardown::Answer answer;
  // What fails here is the wait for a rank that has died, which every later wait tells.
  if (!meet(answer).is_ok()) return;
  object.left_circle = !answer.all_came;
  if (!answer.all_came || answer.some_left) return;
  parts_.exposures.erase(object.window->parts().id);
  try {
    if (object.group->places().here.size() == parts_.node.here().count()) parts_.promotions.retry_after_free();
    parts_.promotions.turn_back(object.promotion);
  } catch (const std::bad_alloc&) {
    // Turned back with a later window; the others wait.
  }
  (void)meet(answer);
}

Status WindowTeardown::free(WindowObject* object) {
  if (!object->prepared) {
    if (Status status = prepare_free(*object, "farsum_window_free"); !status.is_ok()) return status;
  }
  parts_.exposures.erase(object->window->parts().id);
  object->teardown->end_access();
  object->group->users().fetch_sub(1, std::memory_order_relaxed);
  sweep_circles();
  std::unique_ptr<WindowObject> gone = parts_.registry.take(object);
  if (!gone->left_circle) {
    depart(*gone);
    return {};
  }
  // The others may still use this rank's memory: it stays what it is until they have come.
  gone->window.reset();
  parts_.registry.keep_left(std::move(gone));
  return {};
}

// Nobody uses this rank's part any more.
void WindowTeardown::depart(WindowObject& object) {
  if (object.in_balance) parts_.promotions.spared(object.own.head().worth_ns.load(std::memory_order_relaxed));
  try {
    if (object.promotion) parts_.promotions.turn_back(object.promotion);
  } catch (const std::bad_alloc&) {
    // The promotion is kept, and turned back with a later window's.
  }
  object.cards.reset();
  parts_.extents.give_back(object.table);
  // All is left but where the ranks part, and before others may have it: from then on what lies there is theirs.
  parts_.extents.leave({object.extent.offset + object.control_bytes, object.extent.bytes - object.control_bytes});
  if (!object.teardown->depart()) return;
  parts_.node.segment().unmark_atomics_only(object.extent, parts_.node.id_in_segment());
  parts_.extents.give_back(object.extent);
}

void WindowTeardown::sweep_circles() {
  for (const std::unique_ptr<WindowObject>& object : parts_.registry.take_ended()) depart(*object);
}

void WindowTeardown::turn_all_back() {
  for (const std::unique_ptr<WindowObject>& object : parts_.registry.living())
    parts_.exposures.erase(object->window->parts().id);
  for (const auto* objects : {&parts_.registry.living(), &parts_.registry.left()})
    for (const std::unique_ptr<WindowObject>& object : *objects) parts_.promotions.turn_back(object->promotion);
  parts_.promotions.retry_at_end();
}

}  // namespace farsum
