#include "runtime/counter.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace farsum {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

// An operation on the one word.
Operation word_operation(OperationKind kind) {
  Operation operation;
  operation.kind = kind;
  operation.type = ops::ElementType::uint64;
  operation.bytes = word_bytes;
  operation.operand_layout = ops::LayoutView::contiguous(operation.bytes);
  operation.target_layout = operation.operand_layout;
  operation.result_layout = operation.operand_layout;
  return operation;
}

}  // namespace

Result<std::shared_ptr<Counter>> Counter::create(Windows& windows, Group& group, const Options& options) {
  if (options.home >= group.size()) {
    return Status(Code::rank,
                  fmt::format("farsum_counter_create: home rank {} is not in the group, whose ranks are 0 to {}",
                              static_cast<std::int32_t>(options.home), group.size() - 1));
  }
  const std::shared_ptr<Counter> counter = make(windows, group, options);
  const bool is_home = group.my_rank() == options.home;
  WindowOptions window_options;
  window_options.name = "counter";
  window_options.notification_slots = 1;
  window_options.internal = true;
  window_options.lacks_memory = options.lacks_memory || counter == nullptr;
  window_options.promises = promise_single_element;
  Result<WindowObject*> object = windows.allocate(group, is_home ? word_bytes : 0, window_options);
  if (!object.is_ok()) return object.take_status();
  counter->object_ = object.value();
  counter->window_ = object.value()->window.get();
  return counter;
}

// Null where there is no memory.
std::shared_ptr<Counter> Counter::make(Windows& windows, Group& group, const Options& options) noexcept {
  try {
    return std::shared_ptr<Counter>(new Counter(windows, group, options));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// One long access epoch. It begins with the first ticket: what may fail on one rank alone is no part of a call of all.
Status Counter::begin() {
  // Acquire: who sees that the epoch has begun sees the window in it; pairs with the release below.
  if (is_open_.load(std::memory_order_acquire)) return {};
  const MutexGuard lock(opening_);
  // Relaxed: it is stored under the lock.
  if (is_open_.load(std::memory_order_relaxed)) return {};
  Status status = window_->all_locks().lock();
  is_open_.store(status.is_ok(), std::memory_order_release);
  return status;
}

Status Counter::reset() {
  if (Status status = group_.team().barrier("farsum_counter_reset"); !status.is_ok()) return status;
  {
    const MutexGuard lock(mutex_);
    lease_next_ = lease_end_ = 0;
  }
  if (group_.my_rank() == options_.home) std::memset(object_->memory, 0, window_->part_bytes(options_.home));
  return group_.team().barrier("farsum_counter_reset");
}

Status Counter::free() {
  // Relaxed, both: no other thread draws any more.
  if (is_open_.load(std::memory_order_relaxed)) {
    if (Status status = window_->all_locks().unlock(); !status.is_ok()) return status;
    is_open_.store(false, std::memory_order_relaxed);
  }
  return windows_.free(object_);
}

Result<std::uint64_t> Counter::next() { return options_.kind == CounterKind::strict ? next_strict() : next_leased(); }

Status Counter::fetch_add(std::uint64_t amount, std::uint64_t& old) {
  if (window_->hot().reduce(options_.home, 0, &amount, &old, word_bytes, ops::ElementType::uint64, ops::Operator::sum))
    return {};
  if (Status status = begin(); !status.is_ok()) return status;
  Operation operation = word_operation(OperationKind::get_accumulate);
  operation.op = ops::Operator::sum;
  operation.operand = reinterpret_cast<const std::byte*>(&amount);
  operation.result = reinterpret_cast<std::byte*>(&old);
  return window_->operate(operation, options_.home, Completion::blocking, nullptr);
}

Result<std::uint64_t> Counter::next_strict() {
  std::uint64_t old = 0;
  if (Status status = fetch_add(1, old); !status.is_ok()) return status;
  return old;
}

// Guided self-scheduling: a chunk is what is left over twice the number of ranks, at least one ticket.
Result<std::uint64_t> Counter::next_leased() {
  const MutexGuard lock(mutex_);
  if (lease_next_ == lease_end_) {
    std::uint64_t seen = 0;
    if (Status status = begin(); !status.is_ok()) return status;
    Operation look = word_operation(OperationKind::get_accumulate);
    look.op = ops::Operator::no_op;
    look.result = reinterpret_cast<std::byte*>(&seen);
    if (Status status = window_->operate(look, options_.home, Completion::blocking, nullptr); !status.is_ok())
      return status;
    const std::uint64_t left = seen < options_.limit ? options_.limit - seen : 0;
    const std::uint64_t chunk = std::max<std::uint64_t>(left / (2 * std::uint64_t{group_.size()}), 1);
    std::uint64_t first = 0;
    if (Status status = fetch_add(chunk, first); !status.is_ok()) return status;
    lease_next_ = first;
    lease_end_ = first + chunk;
  }
  return lease_next_++;
}

}  // namespace farsum
