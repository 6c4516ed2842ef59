#include "runtime/counter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace farsum {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

Operation word_operation(OperationKind kind, std::uint64_t first, std::uint64_t count) {
  Operation operation;
  operation.kind = kind;
  operation.type = ops::ElementType::uint64;
  operation.offset = first * word_bytes;
  operation.bytes = count * word_bytes;
  operation.operand_layout = ops::LayoutView::contiguous(operation.bytes);
  operation.target_layout = operation.operand_layout;
  operation.result_layout = operation.operand_layout;
  return operation;
}

std::uint64_t leaves_of(const Group& group) { return std::bit_ceil(std::uint64_t{group.size()}); }

}  // namespace

Result<std::shared_ptr<Counter>> Counter::create(Context& context, Group& group, const Options& options) {
  if (options.home >= group.size()) {
    return Status(Code::rank,
                  fmt::format("farsum_counter_create: home rank {} is not in the group, whose ranks are 0 to {}",
                              static_cast<std::int32_t>(options.home), group.size() - 1));
  }
  const std::shared_ptr<Counter> counter = make(context, group, options);
  // One word; or one per rank; or a heap-shaped tree, whose root is word 1.
  std::uint64_t words = 1;
  if (options.kind == CounterKind::per_rank) words = group.size();
  if (options.kind == CounterKind::tree) words = 2 * leaves_of(group);
  const bool is_home = group.my_rank() == options.home;
  WindowOptions window_options;
  window_options.name = "counter";
  window_options.notification_slots = 1;
  window_options.internal = true;
  window_options.lacks_memory = options.lacks_memory || counter == nullptr;
  const bool one_word = options.kind == CounterKind::strict || options.kind == CounterKind::leased;
  if (one_word) window_options.promises = promise_single_element;
  Result<WindowObject*> object = context.allocate_window(group, is_home ? words * word_bytes : 0, window_options);
  if (!object.is_ok()) return object.take_status();
  counter->object_ = object.value();
  counter->window_ = object.value()->window.get();
  return counter;
}

// Null where there is no memory.
std::shared_ptr<Counter> Counter::make(Context& context, Group& group, const Options& options) noexcept {
  try {
    std::shared_ptr<Counter> counter(new Counter(context, group, options));
    counter->leaves_ = leaves_of(group);
    return counter;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The one-word kinds stay in one long access epoch; the others lock per ticket, as their papers do. It begins with the
// first ticket: what may fail on one rank alone is no part of a call of all.
Status Counter::begin() {
  // Relaxed, here and below: under the lock it is what was stored last; without it the window tells what is wrong.
  if (is_open_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(opening_);
  if (is_open_.load(std::memory_order_relaxed)) return {};
  Status status = window_->lock_all();
  is_open_.store(status.is_ok(), std::memory_order_relaxed);
  return status;
}

Status Counter::reset() {
  if (Status status = group_.team().barrier("farsum_counter_reset"); !status.is_ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    lease_next_ = lease_end_ = taken_ = 0;
  }
  if (group_.my_rank() == options_.home) std::memset(object_->memory, 0, window_->part_bytes(options_.home));
  return group_.team().barrier("farsum_counter_reset");
}

Status Counter::free() {
  if (is_open_.load(std::memory_order_relaxed)) {
    if (Status status = window_->unlock_all(); !status.is_ok()) return status;
    is_open_.store(false, std::memory_order_relaxed);
  }
  return context_.free_window(object_);
}

Result<std::uint64_t> Counter::next() {
  switch (options_.kind) {
    case CounterKind::strict:
      return next_strict();
    case CounterKind::leased:
      return next_leased();
    case CounterKind::per_rank:
      return next_per_rank();
    case CounterKind::tree:
      return next_tree();
  }
  return Status(Code::argument, "farsum_counter_next: unknown kind of counter");
}

Status Counter::fetch_add(std::uint64_t amount, std::uint64_t& old) {
  if (window_->hot().reduce(options_.home, 0, &amount, &old, word_bytes, ops::ElementType::uint64, ops::Operator::sum))
    return {};
  if (Status status = begin(); !status.is_ok()) return status;
  Operation operation = word_operation(OperationKind::get_accumulate, 0, 1);
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
  const std::lock_guard lock(mutex_);
  if (lease_next_ == lease_end_) {
    std::uint64_t seen = 0;
    if (Status status = begin(); !status.is_ok()) return status;
    Operation look = word_operation(OperationKind::get_accumulate, 0, 1);
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

Status Counter::get_words(std::uint64_t first, std::uint64_t count, std::uint64_t* into) {
  if (count == 0) return {};
  Operation get = word_operation(OperationKind::get, first, count);
  get.result = reinterpret_cast<std::byte*>(into);
  return window_->operate(get, options_.home, Completion::implicit, nullptr);
}

// Paper 3, get_task: under an exclusive lock, two gets around this rank's own word and one put of it; the ticket is the
// sum.
Result<std::uint64_t> Counter::next_per_rank() {
  const std::lock_guard lock(mutex_);
  const std::uint32_t me = group_.my_rank();
  std::vector<std::uint64_t> words(group_.size(), 0);
  const std::uint64_t mine = taken_ + 1;
  if (Status status = window_->lock(options_.home, LockMode::exclusive); !status.is_ok()) return status;
  Status status = get_words(0, me, words.data());
  if (status.is_ok()) status = get_words(me + 1, group_.size() - me - 1, words.data() + me + 1);
  if (status.is_ok()) {
    Operation put = word_operation(OperationKind::put, me, 1);
    put.operand = reinterpret_cast<const std::byte*>(&mine);
    status = window_->operate(put, options_.home, Completion::implicit, nullptr);
  }
  Status unlocked = window_->unlock(options_.home);
  if (!status.is_ok()) return status;
  if (!unlocked.is_ok()) return unlocked;
  words[me] = taken_;
  taken_ = mine;
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum += word;
  return sum;
}

// Gropp et al., fetchandadd_tree: every node of a binary tree holds the sum below it. Under an exclusive lock a rank
// adds one to each node on its path but reads only their siblings; with its own count they make the total.
Result<std::uint64_t> Counter::next_tree() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t one = 1;
  std::vector<std::uint64_t> siblings(static_cast<std::size_t>(std::countr_zero(leaves_)), 0);
  if (Status status = window_->lock(options_.home, LockMode::exclusive); !status.is_ok()) return status;
  Status status;
  std::size_t level = 0;
  for (std::uint64_t node = leaves_ + group_.my_rank(); node > 1 && status.is_ok(); node /= 2, ++level) {
    status = get_words(node ^ 1, 1, &siblings[level]);
    if (!status.is_ok()) break;
    Operation add = word_operation(OperationKind::accumulate, node, 1);
    add.op = ops::Operator::sum;
    add.operand = reinterpret_cast<const std::byte*>(&one);
    status = window_->operate(add, options_.home, Completion::implicit, nullptr);
  }
  Status unlocked = window_->unlock(options_.home);
  if (!status.is_ok()) return status;
  if (!unlocked.is_ok()) return unlocked;
  std::uint64_t sum = taken_++;
  for (const std::uint64_t sibling : siblings) sum += sibling;
  return sum;
}

}  // namespace farsum
