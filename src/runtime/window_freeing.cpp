// Unmaking windows: the ranks agree that one goes, each leaves it on its own, the last gives its extent back. Ranks
// that free windows in different orders: collectives/teardown.hpp.
#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "runtime/context.hpp"

namespace farsum {

// Where several threads make and free windows, one of them may be about to do what another rank waits for.
void Context::note_thread() {
  const std::lock_guard lock(mutex_);
  const std::thread::id me = std::this_thread::get_id();
  if (window_thread_ == std::thread::id()) window_thread_ = me;
  if (window_thread_ != me) circle_->take_out();
}

Status Context::prepare_free(WindowObject& object, const char* call) {
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
  if (answer.all_came && object.some_promoted) demote_in_quiet(object, call);
  return {};
}

// Circles of ranks that free in different orders are seen within a node only; over nodes a free waits for all.
Status Context::agree_to_part(WindowObject& object, Code mine, const char* call, Teardown::Answer& answer) {
  if (object.group->places().is_one_node()) return object.teardown->agree(mine, *circle_, call, answer);
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

Status Context::free_window(WindowObject* object) {
  if (!object->prepared) {
    if (Status status = prepare_free(*object, "farsum_window_free"); !status.is_ok()) return status;
  }
  exposures_.erase(object->window->parts().id);
  object->teardown->end_access();
  object->group->users().fetch_sub(1, std::memory_order_relaxed);
  sweep_circles();
  std::unique_ptr<WindowObject> gone;
  {
    const std::lock_guard lock(mutex_);
    retired_hot_traffic_ += object->window->hot_traffic();
    const auto place =
        std::find_if(windows_.begin(), windows_.end(), [object](const auto& other) { return other.get() == object; });
    gone = std::move(*place);
    std::swap(*place, windows_.back());
    windows_.pop_back();
    if (object->left_circle) {
      // The others may still use this rank's memory: it stays what it is until they have come.
      object->window.reset();
      left_circles_.push_back(std::move(gone));
      return {};
    }
  }
  depart(*gone);
  return {};
}

// What this rank has mapped of an extent that it uses no more. Ranks that are threads of one process would unmap what
// the others still use; and what a window was made over stays as long as that window may be asked for it.
void Context::leave(HeapExtent extent) {
  NodeSegment& segment = *membership_.segment;
  if (!segment.would_leave(extent) || membership_.segment.use_count() != 1) return;
  if (!exposures_.overlaps(reinterpret_cast<std::uintptr_t>(segment.at(extent.offset)), extent.bytes))
    segment.leave_extent(extent);
}

// What no rank uses any more.
void Context::give_back(HeapExtent extent) {
  leave(extent);
  membership_.segment->release(extent, node_.id_in_segment());
}

// Nobody uses this rank's part any more.
void Context::depart(WindowObject& object) {
  settle_balance(object);
  try {
    if (object.promotion) demote(object);
  } catch (const std::bad_alloc&) {
    // The promotion is kept, and turned back with a later window's.
  }
  object.cards.reset();
  give_back(object.table);
  // All is left but where the ranks part, and before others may have it: from then on what lies there is theirs.
  leave({object.extent.offset + object.control_bytes, object.extent.bytes - object.control_bytes});
  if (!object.teardown->depart()) return;
  membership_.segment->unmark_atomics_only(object.extent, node_.id_in_segment());
  give_back(object.extent);
}

void Context::sweep_circles() {
  std::vector<std::unique_ptr<WindowObject>> departing;
  {
    const std::lock_guard lock(mutex_);
    const auto rest = std::stable_partition(left_circles_.begin(), left_circles_.end(),
                                            [](const auto& object) { return !object->teardown->all_ended_access(); });
    std::move(rest, left_circles_.end(), std::back_inserter(departing));
    left_circles_.erase(rest, left_circles_.end());
  }
  for (const std::unique_ptr<WindowObject>& object : departing) depart(*object);
}

}  // namespace farsum
