// The paths that travel to the owner's agent, one by one or gathered, and what waits for them: flush and order.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "protocol/packed_sides.hpp"
#include "window/window.hpp"

namespace farsum {

Status Window::run_owner(const Operation& operation, std::uint32_t target, Completion completion,
                         RequestState* request) {
  RequestState own;
  RequestState* told = completion == Completion::blocking ? &own : request;
  const Rank owner = parts_.ranks[target];
  bool sent = false;
  if (details_[target].lock_is_unsure.load(std::memory_order_relaxed)) [[unlikely]] {
    if (Status status = send_behind_lock(operation, target, told, sent); !status.is_ok()) return status;
  }
  while (!sent && !parts_.engine->submit(owner, parts_.id, operation, views_[target].outstanding, told)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  if (completion != Completion::blocking) return {};
  const char* call = call_name(operation.kind);
  Status status = parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        take_replies(owner);
        // Acquire pairs with the release in OriginEngine::finish_job.
        return own.done.load(std::memory_order_acquire);
      },
      call);
  if (!status.is_ok()) {
    // The engine points at `own` until the operations are ended.
    parts_.engine->fail_all();
    return status;
  }
  return texts_.answered(target, call, own.code.load(std::memory_order_relaxed));
}

bool Window::update_remote(std::uint32_t target, std::uint64_t offset, const void* element, ops::ElementType type,
                           ops::Operator op) {
  const std::uint64_t size = ops::size_of(type);
  if (target >= size_) return false;
  const Detail& detail = details_[target];
  if (detail.remote_bytes < size || offset > detail.remote_bytes - size || element == nullptr) return false;
  if (op == ops::Operator::scaled_sum || op == ops::Operator::no_op || !ops::legal(type, op)) return false;
  // Relaxed: as in_access_epoch() and run_owner().
  if (views_[target].open.load(std::memory_order_relaxed) <= no_epoch || awaits_post(target) ||
      detail.lock_is_unsure.load(std::memory_order_relaxed))
    return false;
  note_issued();
  const Update update{type, op, offset, static_cast<const std::byte*>(element), size, nullptr};
  const bool has_joined = hot_parts_.aggregates ? gather_remote(target, update)
                                                : parts_.engine->submit_update(parts_.ranks[target], parts_.id, update,
                                                                               views_[target].outstanding);
  if (!has_joined) return false;
  note_change(target);
  if (read_ahead_ != nullptr) [[unlikely]]
    read_ahead_->changed(target, offset, offset + size);
  count(hot_parts_.aggregates ? Path::aggregated : Path::owner, size);
  return true;
}

// The element goes behind those whose offsets are there, whatever one that found no memory has left.
void Window::Gathered::add(std::uint64_t offset, const std::byte* element, std::uint64_t bytes) {
  const std::size_t at = offsets.size() * bytes;
  elements.resize(at + bytes);
  if (element != nullptr) std::memcpy(elements.data() + at, element, bytes);
  offsets.push_back(offset);
}

// False where it is the first of its kind, or the last that there is room for: the long way sends what was gathered.
bool Window::gather_remote(std::uint32_t target, const Update& update) {
  Gathered& gathered = details_[target].gathered;
  const std::lock_guard lock(gathered.mutex);
  if (gathered.offsets.empty() || gathered.offsets.size() + 1 >= parts_.aggregate_limit) return false;
  if (gathered.type != update.type || gathered.op != update.op) return false;
  gathered.add(update.offset, update.operand, update.bytes);
  return true;
}

Status Window::run_aggregated(const Operation& operation, std::uint32_t target) {
  Gathered& gathered = details_[target].gathered;
  bool full = false;
  {
    std::unique_lock lock(gathered.mutex);
    const std::uint64_t size = ops::size_of(operation.type);
    const auto same = [&] {
      return gathered.type == operation.type && gathered.op == operation.op &&
             (operation.alpha == nullptr || std::memcmp(gathered.alpha, operation.alpha, size) == 0);
    };
    // It looks again, because another thread may gather something else while the lock is free.
    while (!gathered.offsets.empty() && !same()) {
      lock.unlock();
      if (Status status = send_gathered(target); !status.is_ok()) return status;
      lock.lock();
    }
    gathered.type = operation.type;
    gathered.op = operation.op;
    if (operation.alpha != nullptr) std::memcpy(gathered.alpha, operation.alpha, size);
    // One element, so one piece on each side.
    ops::PieceCursor target_piece(operation.target_layout, size);
    const PackedOperand operand(operation);
    gathered.add(operation.offset + static_cast<std::uint64_t>(target_piece.next().offset), operand.data(), size);
    full = gathered.offsets.size() >= parts_.aggregate_limit;
  }
  return full ? send_gathered(target) : Status();
}

Status Window::send_gathered(std::uint32_t target) {
  Gathered& gathered = details_[target].gathered;
  const std::lock_guard lock(gathered.mutex);
  if (gathered.offsets.empty()) return {};
  if (Status status = learn_of_lock(target, "farsum_accumulate"); !status.is_ok()) return status;
  gathered.elements.resize(gathered.offsets.size() * ops::size_of(gathered.type));
  while (!parts_.engine->submit_scatter(parts_.ranks[target], parts_.id, gathered.type, gathered.op, gathered.alpha,
                                        gathered.offsets, gathered.elements, views_[target].outstanding)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  gathered.offsets.clear();
  gathered.elements.clear();
  return {};
}

void Window::take_replies(Rank owner) {
  if (parts_.engine->progress(owner) != 0) parts_.waiter->note_come();
}

// Back-pressure: sleeps until a reply has made room.
Status Window::wait_for_room(std::uint32_t target) {
  const Rank owner = parts_.ranks[target];
  return parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        take_replies(owner);
        return parts_.engine->has_room(owner);
      },
      "waiting for room in the target's mailbox");
}

// Waits until done(), which replies of the target bring about.
template <class Done>
Status Window::wait_for_replies(std::uint32_t target, Done&& done, const char* call) {
  if (!done()) {
    const bool has_copies = read_ahead_ != nullptr && !is_here(target);
    const std::size_t fetches = has_copies ? end_round_of_reads(target) : 0;
    if (Status status = wait_for_answers(target, done, call); !status.is_ok()) return status;
    // Blocks are right behind what was waited for, and what is read next may be in them.
    if (Status status = fetches != 0 ? await_fetches(target, call) : Status(); !status.is_ok()) return status;
  }
  return take_failure(target, call);
}

Status Window::wait_for_answers(std::uint32_t target, FunctionRef<bool()> done, const char* call) {
  const Rank owner = parts_.ranks[target];
  const auto progress = [&] {
    take_replies(owner);
    return done();
  };
  Status status = parts_.waiter->wait(parts_.waiter->own_events(), progress, call);
  // The job is over: nothing under way may still point at the program's buffers when this returns.
  if (!status.is_ok()) parts_.engine->fail_all();
  return status;
}

Status Window::wait_outstanding(std::uint32_t target, const char* call) {
  settle_card(target, call);
  // Acquire pairs with the release in OriginEngine::finish_job.
  return wait_for_replies(
      target, [&view = views_[target]] { return view.outstanding.count.load(std::memory_order_acquire) == 0; }, call);
}

// What was gathered is a copy. At a target of this node operations may take several paths, on which a later one could
// overtake what is only on its way; there a program that knows its buffers free has always found everything done.
Status Window::wait_for_buffers(std::uint32_t target, const char* call) {
  if (is_here(target)) {
    if (Status status = hot_parts_.aggregates ? send_gathered(target) : Status(); !status.is_ok()) return status;
    return wait_outstanding(target, call);
  }
  if (card_targets_ != nullptr) {
    if (Status status = await_card(target, card_targets_[target].posted, call); !status.is_ok()) return status;
  }
  // Acquire pairs with the release in OriginEngine::stop_borrowing.
  return wait_for_replies(
      target, [&view = views_[target]] { return view.outstanding.borrowing.load(std::memory_order_acquire) == 0; },
      call);
}

Status Window::take_failure(std::uint32_t target, const char* call) {
  Outstanding& outstanding = views_[target].outstanding;
  if (outstanding.failure.load(std::memory_order_relaxed) == Code::ok) return {};
  const Code code = outstanding.failure.exchange(Code::ok, std::memory_order_relaxed);
  return texts_.answered(target, call, code, "an earlier operation failed");
}

Status Window::flush(std::uint32_t target, const char* call) {
  if (Status status = checks_.rank(call, target); !status.is_ok()) return status;
  if (views_[target].open.load(std::memory_order_relaxed) <= no_epoch) {
    return {Code::sync, fmt::format("{}: outside an access epoch", texts_.where(call, target))};
  }
  if (hot_parts_.aggregates) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  details_[target].ordered.store(false, std::memory_order_relaxed);
  if (Status status = wait_outstanding(target, call); !status.is_ok()) return status;
  flush_fence();
  return {};
}

Status Window::flush_all(const char* call) {
  // Everything is sent before anything is waited for.
  if (hot_parts_.aggregates) {
    for (std::uint32_t target = 0; target < size_; ++target) {
      if (Status status = send_gathered(target); !status.is_ok()) return status;
    }
  }
  settle_cards(call);
  Status first;
  for (std::uint32_t target = 0; target < size_; ++target) {
    details_[target].ordered.store(false, std::memory_order_relaxed);
    Status status = wait_outstanding(target, call);
    if (first.is_ok() && !status.is_ok()) first = std::move(status);
  }
  flush_fence();
  return first;
}

Status Window::flush_every_target(Reach reach) {
  const char* const call = reach == Reach::local ? "farsum_flush_local" : "farsum_flush";
  const std::int32_t least = least_open_to_flush();
  bool in_epoch = false;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (least == active_epoch && awaits_post(target)) {
      if (Status status = await_post(target, call); !status.is_ok()) return status;
    }
    in_epoch |= views_[target].open.load(std::memory_order_relaxed) >= least;
  }
  if (!in_epoch) return outside_flushable_epoch(fmt::format("{}: window {}", call, parts_.id));
  if (reach == Reach::target) return flush_all(call);
  Status first;
  for (std::uint32_t target = 0; target < size_; ++target) {
    Status status = wait_for_buffers(target, call);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

Status Window::flush_one_target(std::uint32_t target, Reach reach) {
  const char* const call = reach == Reach::local ? "farsum_flush_local" : "farsum_flush";
  if (Status status = checks_.rank(call, target); !status.is_ok()) return status;
  const std::int32_t least = least_open_to_flush();
  if (least == active_epoch && awaits_post(target)) {
    if (Status status = await_post(target, call); !status.is_ok()) return status;
  }
  if (views_[target].open.load(std::memory_order_relaxed) < least) return outside_flushable_epoch(texts_.where(call, target));
  return reach == Reach::local ? wait_for_buffers(target, call) : flush(target, call);
}

std::int32_t Window::least_open_to_flush() const {
  return (parts_.promises & promise_strict_epochs) != 0 ? passive_epoch : active_epoch;
}

Status Window::outside_flushable_epoch(const std::string& what) const {
  if (least_open_to_flush() == active_epoch) return {Code::sync, what + ": outside an access epoch"};
  return {Code::sync, what +
                          ": outside an access epoch of farsum_lock or farsum_lock_all, which the window demands "
                          "(FARSUM_STRICT_EPOCHS)"};
}

Status Window::order() {
  for (std::uint32_t target = 0; target < size_; ++target)
    details_[target].ordered.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace farsum
