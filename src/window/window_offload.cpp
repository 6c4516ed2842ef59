// What network cards do, in windows that are declared for them alone: nothing else touches that memory for another rank
// or for the own one (see memory/atomicity.hpp). A card adds, combines bits, swaps and compares words of 4 and 8 bytes;
// other operators are computed here and written by compare-and-swap.
//
// Completion: what was started makes `outstanding` of its target count one more until a flush of the card, so that
// whatever waits for a target's operations finds it. An epoch's end, a notification and a post go to the target behind
// that flush: a message, and a store to memory that ranks of a node share, may overtake a card.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "protocol/packed_sides.hpp"
#include "window/window.hpp"

namespace farsum {
namespace {

enum class CardMeans : std::uint8_t {
  none,
  move,          // put or get of single bytes and pairs of them, which no wire tears
  update,        // CardOperation::update
  exchange,      // computed here, written by compare-and-swap
  compare_swap,  // what the program asks for
};

struct CardOperation {
  CardMeans means = CardMeans::none;
  CardUpdate update = CardUpdate::swap;
};

constexpr bool is_word(std::size_t bytes) { return bytes == 4 || bytes == 8; }

CardOperation by_update(CardUpdate update) { return {CardMeans::update, update}; }

// What a card does for an operator on elements of a word's size.
CardOperation operation_on_words(ops::ElementType type, ops::Operator op) {
  switch (op) {
    case ops::Operator::replace:
      return by_update(CardUpdate::swap);
    case ops::Operator::no_op:
      return by_update(CardUpdate::add);  // of nothing
    case ops::Operator::band:
      return by_update(CardUpdate::bit_and);
    case ops::Operator::bor:
      return by_update(CardUpdate::bit_or);
    case ops::Operator::bxor:
      return by_update(CardUpdate::bit_xor);
    case ops::Operator::sum:
      if (ops::kind_of(type) == ops::ElementKind::integer) return by_update(CardUpdate::add);
      return {CardMeans::exchange};
    default:
      return {CardMeans::exchange};
  }
}

CardOperation card_operation(const Operation& operation) {
  const std::size_t bytes = ops::size_of(operation.type);
  if (operation.kind == OperationKind::compare_and_swap)
    return {is_word(bytes) ? CardMeans::compare_swap : CardMeans::none};
  if (is_word(bytes)) return operation_on_words(operation.type, operation.op);
  const bool moves = operation.kind == OperationKind::accumulate ? operation.op == ops::Operator::replace
                                                                 : operation.op == ops::Operator::no_op;
  return {bytes < 4 && moves ? CardMeans::move : CardMeans::none};
}

// The low bytes of a word.
std::uint64_t value_of(const std::byte* bytes, std::size_t size) {
  std::uint64_t value = 0;
  if (bytes != nullptr) std::memcpy(&value, bytes, size);
  return value;
}

// An element that lies in the target's memory, and where it lies in the packed sides.
struct CardElement {
  std::uint64_t address;
  std::uint64_t packed_at;
};

// One that is computed here: what it was when it was computed on, and what it is found to be.
struct CardExchange {
  CardElement element;
  alignas(8) std::byte old[8];
  alignas(8) std::byte found[8];
};

struct Fetched {
  CardUpdate update;
  std::uint64_t operand;
  std::uint64_t compare;
};

// Calls f(address, packed_at, bytes) for each piece of the target's memory, in packed order, until it answers false.
template <class F>
void for_each_piece_at(const Operation& operation, std::uint64_t base, F&& f) {
  ops::PieceCursor cursor(operation.target_layout, operation.bytes);
  std::uint64_t at = 0;
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    if (!f(base + static_cast<std::uint64_t>(piece.offset), at, piece.bytes)) return;
    at += piece.bytes;
  }
}

template <class F>
void for_each_element_at(const Operation& operation, std::uint64_t base, F&& f) {
  const std::uint64_t size = ops::size_of(operation.type);
  for_each_piece_at(operation, base, [&](std::uint64_t address, std::uint64_t at, std::uint64_t bytes) {
    bool go_on = true;
    for (std::uint64_t done = 0; done < bytes && go_on; done += size) go_on = f(CardElement{address + done, at + done});
    return go_on;
  });
}

// What last_update says besides a CardUpdate plus one: an update whose kind does not matter to what comes next.
constexpr std::uint8_t no_update = 0;
constexpr std::uint8_t mixed_updates = 255;

}  // namespace

// One operation on its way to a card.
struct Window::CardCall {
  Window& window;
  const Operation& operation;
  std::uint32_t target;
  std::uint64_t base;  // where the operation's range begins, in the owner
  CardOperation how;
  CardCompletion& completion;
  const std::byte* operand;
  std::byte* result;

  Rdma& rdma() const { return *window.parts_.cards.rdma; }
  Rdma::Reached part() const { return window.parts_.cards.parts[target]; }
  std::uint8_t size() const { return static_cast<std::uint8_t>(ops::size_of(operation.type)); }
  const char* name() const { return call_name(operation.kind); }
  // What the card says, for the program.
  Status told(Status status) const { return window.card_status(std::move(status), target, name()); }

  Status run() const;
  Status move() const;
  Status update() const;
  Status compare_and_swap() const;
  Status exchange() const;
  Status exchange_some(std::span<const CardElement> elements, const Reduction& reduction) const;
  template <class What>
  Status fetch_all(std::span<CardExchange> words, What&& what) const;
};

Status Window::CardCall::run() const {
  switch (how.means) {
    case CardMeans::move:
      return move();
    case CardMeans::update:
      return update();
    case CardMeans::compare_swap:
      return compare_and_swap();
    case CardMeans::exchange:
      return exchange();
    case CardMeans::none:
      break;
  }
  return {};
}

Status Window::CardCall::move() const {
  const bool writes = !returns_data(operation.kind);
  Status status;
  for_each_piece_at(operation, base, [&](std::uint64_t address, std::uint64_t at, std::uint64_t bytes) {
    status = told(writes ? rdma().put(part(), address, {operand + at, bytes}, completion)
                         : rdma().get(part(), address, {result + at, bytes}, completion));
    return status.is_ok();
  });
  return status;
}

Status Window::CardCall::update() const {
  Status status;
  const bool is_read = operation.op == ops::Operator::no_op;
  for_each_element_at(operation, base, [&](const CardElement& element) {
    const CardWord word{element.address, size()};
    const std::uint64_t value = is_read || operand == nullptr ? 0 : value_of(operand + element.packed_at, word.bytes);
    status = told(result == nullptr
                      ? rdma().update(part(), word, how.update, value)
                      : rdma().fetch(part(), word, how.update, value, 0, result + element.packed_at, completion));
    return status.is_ok();
  });
  return status;
}

Status Window::CardCall::compare_and_swap() const {
  ops::PieceCursor cursor(operation.target_layout, operation.bytes);
  const CardWord word{base + static_cast<std::uint64_t>(cursor.next().offset), size()};
  return told(rdma().fetch(part(), word, CardUpdate::compare_and_swap, value_of(operand, word.bytes),
                           value_of(operation.compare, word.bytes), result, completion));
}

// One wait is worth so many elements at once.
constexpr std::size_t most_exchanged = 256;

Status Window::CardCall::exchange() const {
  const Reduction reduction = make_reduction(*window.parts_.kernels, operation.type, operation.op, operation.alpha, 0);
  std::vector<CardElement> elements;
  elements.reserve(std::min<std::uint64_t>(operation.bytes / size(), most_exchanged));
  Status status;
  for_each_element_at(operation, base, [&](const CardElement& element) {
    elements.push_back(element);
    if (elements.size() == most_exchanged) {
      status = exchange_some(elements, reduction);
      elements.clear();
    }
    return status.is_ok();
  });
  if (status.is_ok() && !elements.empty()) status = exchange_some(elements, reduction);
  return status;
}

// Reads all, then writes each where it is still what was read; those that are not are computed again from what the
// compare-and-swap has found there. Somebody's always succeeds.
Status Window::CardCall::exchange_some(std::span<const CardElement> elements, const Reduction& reduction) const {
  std::vector<CardExchange> words(elements.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i].element = elements[i];
  Status status = fetch_all(words, [](CardExchange&) { return Fetched{CardUpdate::add, 0, 0}; });
  for (std::span<CardExchange> left(words); !left.empty() && status.is_ok();) {
    status = fetch_all(left, [&](CardExchange& word) {
      std::memcpy(word.old, word.found, size());
      alignas(8) std::byte fresh[8];
      std::memcpy(fresh, word.old, size());
      reduction.bulk(fresh, operand == nullptr ? nullptr : operand + word.element.packed_at, 1, operation.alpha);
      return Fetched{CardUpdate::compare_and_swap, value_of(fresh, size()), value_of(word.old, size())};
    });
    if (!status.is_ok()) break;
    const auto done = std::partition(left.begin(), left.end(), [&](const CardExchange& word) {
      return std::memcmp(word.old, word.found, size()) != 0;
    });
    for (auto word = done; result != nullptr && word != left.end(); ++word)
      std::memcpy(result + word->element.packed_at, word->old, size());
    left = left.first(static_cast<std::size_t>(done - left.begin()));
  }
  return status;
}

// Has the card do to each word what `what` says of it, and waits for all old values.
template <class What>
Status Window::CardCall::fetch_all(std::span<CardExchange> words, What&& what) const {
  CardCompletion own;
  Status status;
  for (CardExchange& word : words) {
    const Fetched fetched = what(word);
    status = told(rdma().fetch(part(), {word.element.address, size()}, fetched.update, fetched.operand, fetched.compare,
                               word.found, own));
    if (!status.is_ok()) break;
  }
  // What was started points here, whatever came of the rest.
  Status waited = window.await_card(target, own, name());
  return status.is_ok() ? std::move(waited) : std::move(status);
}

// Refuses what a card cannot do, before anything is started.
Status Window::check_for_card(const Operation& operation, std::uint32_t target, const Region& region) const {
  if (!is_atomic(operation.kind)) return {};
  const std::uint64_t base = region.owner_address + (operation.offset - region.offset);
  const char* const call = call_name(operation.kind);
  if (card_operation(operation).means == CardMeans::none) {
    return {
        Code::unsupported,
        fmt::format("{}: the window is declared network-only, and a network card does not do {} on elements of {} "
                    "bytes ({}) by itself: 4 and 8 bytes are for any operator, 1 and 2 for replace without a "
                    "result and no_op; declare the window otherwise",
                    texts_.where(call, target),
                    operation.kind == OperationKind::compare_and_swap ? "compare-and-swap" : ops::name_of(operation.op),
                    ops::size_of(operation.type), ops::name_of(operation.type))};
  }
  const std::uint64_t size = ops::size_of(operation.type);
  Status status;
  for_each_piece_at(operation, base, [&](std::uint64_t address, std::uint64_t, std::uint64_t) {
    if (address % size == 0) return true;
    status = {Code::argument,
              fmt::format("{}: the window is declared network-only, and a network card updates elements of {} bytes at "
                          "multiples of that only; one of these is {} bytes behind such a place",
                          texts_.where(call, target), size, address % size)};
    return false;
  });
  return status;
}

// Accumulates of one origin on one location take effect in its order (MPI 4.1, section 12.7.2). Sums may pass sums.
Status Window::order_card(std::uint32_t target, const Operation& operation) {
  CardTarget& card = card_targets_[target];
  // Relaxed: a thread's own operations count; one that finds another's kind puts in a fence that does no harm.
  bool must_order = details_[target].ordered.load(std::memory_order_relaxed) &&
                    details_[target].ordered.exchange(false, std::memory_order_relaxed);
  if (is_atomic(operation.kind)) {
    const CardOperation how = card_operation(operation);
    const bool is_plain =
        how.means == CardMeans::update && !returns_data(operation.kind) && how.update != CardUpdate::swap;
    const std::uint8_t mine =
        is_plain ? static_cast<std::uint8_t>(static_cast<unsigned>(how.update) + 1) : mixed_updates;
    const std::uint8_t last = card.last_update.exchange(mine, std::memory_order_relaxed);
    const bool keeps_order = (parts_.promises & promise_no_ordering) == 0;
    must_order |= keeps_order && last != no_update && (last != mine || mine == mixed_updates);
  }
  if (!must_order) return {};
  return card_status(parts_.cards.rdma->fence(parts_.ranks[target]), target, call_name(operation.kind));
}

Status Window::run_offload(const Operation& operation, std::uint32_t target, const Region* region,
                           Completion completion, RequestState* request) {
  const char* const call = call_name(operation.kind);
  // What a lock guards is not touched before the lock is held.
  if (Status status = learn_of_lock(target, call); !status.is_ok()) return status;
  if (region == nullptr) {
    Status status = notify_behind_card(operation, target);
    if (status.is_ok() && request != nullptr) request->done.store(true, std::memory_order_release);
    return status;
  }
  const std::uint64_t base = region->owner_address + (operation.offset - region->offset);
  const CardOperation how = is_atomic(operation.kind) ? card_operation(operation) : CardOperation{CardMeans::move};
  if (Status status = order_card(target, operation); !status.is_ok()) return status;
  count(Path::offload, operation.bytes);

  const PackedOperand operand(operation);
  PackedResult result(operation);
  CardCompletion own;
  const bool is_packed = operand.data() != operation.operand || result.data() != operation.result;
  const bool waits = completion != Completion::implicit || is_packed;
  CardCompletion& told = waits ? own : card_targets_[target].posted;
  // The sides that the kind has no use for may be anything.
  std::byte* const into = returns_data(operation.kind) ? result.data() : nullptr;
  const CardCall card{*this, operation, target, base, how, told, operand.data(), into};
  Status status = card.run();
  note_card(target);
  if (waits) {
    // What failed half-way is waited for, too: the rest of it points here.
    Status waited = await_card(target, own, call);
    if (status.is_ok()) status = std::move(waited);
    if (status.is_ok()) result.deliver();
  }
  if (status.is_ok() && completion == Completion::blocking && !returns_data(operation.kind)) {
    settle_card(target, call);
    status = take_failure(target, call);
  }
  if (status.is_ok() && operation.notify) status = notify_behind_card(operation, target);
  if (parts_.hearing != nullptr && tells_of_others(operation)) parts_.hearing->hear();
  if (status.is_ok() && request != nullptr) request->done.store(true, std::memory_order_release);
  return status;
}

Status Window::notify_behind_card(const Operation& operation, std::uint32_t target) {
  settle_card(target, call_name(operation.kind));
  if (Status status = take_failure(target, call_name(operation.kind)); !status.is_ok()) return status;
  if (is_here(target)) {
    // Release: the data comes before the notification; pairs with the acquire load in notify_wait.
    parts_.shared[target].notifications()[operation.notify_slot].fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[target]);
    return {};
  }
  Operation bare;
  bare.notify = true;
  bare.notify_slot = operation.notify_slot;
  return run_owner(bare, target, Completion::implicit, nullptr);
}

Status Window::card_status(Status status, std::uint32_t target, const char* call) const {
  if (status.is_ok()) return status;
  return {status.code(), fmt::format("{}: the network card: {}", texts_.where(call, target), status.text())};
}

// Called after an operation was started: were the mark set before, a flush in between would clear it and not wait for
// the operation.
void Window::note_card(std::uint32_t target) {
  // Release pairs with the acquire in begin_settling.
  if (!card_targets_[target].dirty.exchange(true, std::memory_order_release))
    views_[target].outstanding.count.fetch_add(1, std::memory_order_relaxed);
}

Status Window::await_card(std::uint32_t target, CardCompletion& completion, const char* call) {
  Rdma& rdma = *parts_.cards.rdma;
  Status status = rdma.wait(completion, [&] { return parts_.waiter->looked_in_vain(call); });
  if (!status.is_ok()) {
    // The job is over: nothing under way may still point at the program's buffers when this returns.
    rdma.abandon();
    parts_.engine->fail_all();
    return status;
  }
  // Acquire: what operations brought is here.
  const Code code = completion.failure.exchange(Code::ok, std::memory_order_acquire);
  return texts_.answered(target, call, code, "an operation of the network card failed");
}

// ---- flush ----

bool Window::begin_settling(std::uint32_t target) {
  if (!card_targets_[target].dirty.exchange(false, std::memory_order_acquire)) return false;
  card_targets_[target].last_update.store(no_update, std::memory_order_relaxed);
  note_failure(target, parts_.cards.rdma->flush(parts_.ranks[target], card_targets_[target].posted));
  return true;
}

void Window::end_settling(std::uint32_t target, const char* call) {
  note_failure(target, await_card(target, card_targets_[target].posted, call));
  // Another thread may wait for it.
  views_[target].outstanding.count.fetch_sub(1, std::memory_order_release);
  parts_.waiter->own_events().notify_all();
}

// As with messages: relaxed, for whoever asks learns of the end by the count.
void Window::note_failure(std::uint32_t target, const Status& status) {
  if (!status.is_ok()) views_[target].outstanding.failure.store(status.code(), std::memory_order_relaxed);
}

void Window::settle_card(std::uint32_t target, const char* call) {
  if (card_targets_ == nullptr) [[likely]]
    return;
  if (begin_settling(target)) end_settling(target, call);
}

// All are asked before one is waited for.
void Window::settle_cards(const char* call) {
  if (card_targets_ == nullptr) [[likely]]
    return;
  std::vector<std::uint32_t> begun;
  for (std::uint32_t target = 0; target < size_; ++target) {
    if (begin_settling(target)) begun.push_back(target);
  }
  for (const std::uint32_t target : begun) end_settling(target, call);
}

}  // namespace farsum
