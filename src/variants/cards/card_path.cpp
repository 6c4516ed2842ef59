#include "variants/cards/card_path.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "protocol/packed_sides.hpp"
#include "window/operation_checks.hpp"

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
class CardPath::Call {
 public:
  struct Of {
    const Operation& operation;
    std::uint32_t target;
    std::uint64_t base;  // where the operation's range begins, in the owner
    CardOperation how;
    const std::byte* operand;
    std::byte* result;
  };
  Call(CardPath& path, const Of& of, CardCompletion& completion)
      : path_(path), of_(of), operation_(of.operation), completion_(completion) {}

  Status run() const;

 private:
  Rdma& rdma() const { return *path_.reach_.rdma; }
  Rdma::Reached part() const { return path_.reach_.parts[of_.target]; }
  std::uint8_t size() const { return static_cast<std::uint8_t>(ops::size_of(operation_.type)); }
  const char* name() const { return call_name(operation_.kind); }
  // What the card says, for the program.
  Status told(Status status) const { return path_.told(std::move(status), of_.target, name()); }

  Status move() const;
  Status update() const;
  Status compare_and_swap() const;
  Status exchange() const;
  Status exchange_some(std::span<const CardElement> elements, const Reduction& reduction) const;
  template <class What>
  Status fetch_all(std::span<CardExchange> words, What&& what) const;

  CardPath& path_;
  Of of_;
  const Operation& operation_;
  CardCompletion& completion_;
};

Status CardPath::Call::run() const {
  switch (of_.how.means) {
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

Status CardPath::Call::move() const {
  const bool writes = !returns_data(operation_.kind);
  Status status;
  for_each_piece_at(operation_, of_.base, [&](std::uint64_t address, std::uint64_t at, std::uint64_t bytes) {
    status = told(writes ? rdma().put(part(), address, {of_.operand + at, bytes}, completion_)
                         : rdma().get(part(), address, {of_.result + at, bytes}, completion_));
    return status.is_ok();
  });
  return status;
}

Status CardPath::Call::update() const {
  Status status;
  const bool is_read = operation_.op == ops::Operator::no_op;
  for_each_element_at(operation_, of_.base, [&](const CardElement& element) {
    const CardWord word{element.address, size()};
    const std::uint64_t value =
        is_read || of_.operand == nullptr ? 0 : value_of(of_.operand + element.packed_at, word.bytes);
    status = told(of_.result == nullptr ? rdma().update(part(), word, of_.how.update, value)
                                        : rdma().fetch(part(), word, of_.how.update, value, 0,
                                                       of_.result + element.packed_at, completion_));
    return status.is_ok();
  });
  return status;
}

Status CardPath::Call::compare_and_swap() const {
  ops::PieceCursor cursor(operation_.target_layout, operation_.bytes);
  const CardWord word{of_.base + static_cast<std::uint64_t>(cursor.next().offset), size()};
  return told(rdma().fetch(part(), word, CardUpdate::compare_and_swap, value_of(of_.operand, word.bytes),
                           value_of(operation_.compare, word.bytes), of_.result, completion_));
}

// One wait is worth so many elements at once.
constexpr std::size_t most_exchanged = 256;

Status CardPath::Call::exchange() const {
  const Reduction reduction =
      make_reduction(path_.services_.kernels, operation_.type, operation_.op, operation_.alpha, 0);
  std::vector<CardElement> elements;
  elements.reserve(std::min<std::uint64_t>(operation_.bytes / size(), most_exchanged));
  Status status;
  for_each_element_at(operation_, of_.base, [&](const CardElement& element) {
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
Status CardPath::Call::exchange_some(std::span<const CardElement> elements, const Reduction& reduction) const {
  std::vector<CardExchange> words(elements.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i].element = elements[i];
  Status status = fetch_all(words, [](CardExchange&) { return Fetched{CardUpdate::add, 0, 0}; });
  for (std::span<CardExchange> left(words); !left.empty() && status.is_ok();) {
    status = fetch_all(left, [&](CardExchange& word) {
      std::memcpy(word.old, word.found, size());
      alignas(8) std::byte fresh[8];
      std::memcpy(fresh, word.old, size());
      reduction.bulk(fresh, of_.operand == nullptr ? nullptr : of_.operand + word.element.packed_at, 1,
                     operation_.alpha);
      return Fetched{CardUpdate::compare_and_swap, value_of(fresh, size()), value_of(word.old, size())};
    });
    if (!status.is_ok()) break;
    const auto done = std::partition(left.begin(), left.end(), [&](const CardExchange& word) {
      return std::memcmp(word.old, word.found, size()) != 0;
    });
    for (auto word = done; of_.result != nullptr && word != left.end(); ++word)
      std::memcpy(of_.result + word->element.packed_at, word->old, size());
    left = left.first(static_cast<std::size_t>(done - left.begin()));
  }
  return status;
}

// Has the card do to each word what `what` says of it, and waits for all old values.
template <class What>
Status CardPath::Call::fetch_all(std::span<CardExchange> words, What&& what) const {
  CardCompletion own;
  Status status;
  for (CardExchange& word : words) {
    const Fetched fetched = what(word);
    status = told(rdma().fetch(part(), {word.element.address, size()}, fetched.update, fetched.operand, fetched.compare,
                               word.found, own));
    if (!status.is_ok()) break;
  }
  // What was started points here, whatever came of the rest.
  Status waited = path_.await(of_.target, own, name());
  return status.is_ok() ? std::move(waited) : std::move(status);
}

Status CardPath::check(const Operation& operation, std::uint32_t target, const Region& region) const {
  if (!is_atomic(operation.kind)) return {};
  const std::uint64_t base = region.owner_address + (operation.offset - region.offset);
  const char* const call = call_name(operation.kind);
  if (card_operation(operation).means == CardMeans::none) {
    return {
        Code::unsupported,
        fmt::format("{}: the window is declared network-only, and a network card does not do {} on elements of {} "
                    "bytes ({}) by itself: 4 and 8 bytes are for any operator, 1 and 2 for replace without a "
                    "result and no_op; declare the window otherwise",
                    services_.texts.where(call, target),
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
                          services_.texts.where(call, target), size, address % size)};
    return false;
  });
  return status;
}

// Accumulates of one origin on one location take effect in its order (MPI 4.1, section 12.7.2). Sums may pass sums.
Status CardPath::order(std::uint32_t target, const Operation& operation) {
  CardTarget& card = targets_[target];
  // Relaxed: a thread's own operations count; one that finds another's kind puts in a fence that does no harm.
  bool must_order = services_.order.take(target);
  if (is_atomic(operation.kind)) {
    const CardOperation how = card_operation(operation);
    const bool is_plain =
        how.means == CardMeans::update && !returns_data(operation.kind) && how.update != CardUpdate::swap;
    const std::uint8_t mine =
        is_plain ? static_cast<std::uint8_t>(static_cast<unsigned>(how.update) + 1) : mixed_updates;
    const std::uint8_t last = card.last_update.exchange(mine, std::memory_order_relaxed);
    const bool keeps_order = (services_.promises & promise_no_ordering) == 0;
    must_order |= keeps_order && last != no_update && (last != mine || mine == mixed_updates);
  }
  if (!must_order) return {};
  return told(reach_.rdma->fence(services_.ranks[target]), target, call_name(operation.kind));
}

Status CardPath::run(const ExecutorCall& of) {
  const Operation& operation = of.operation;
  const std::uint32_t target = of.target;
  const char* const call = call_name(operation.kind);
  // What a lock guards is not touched before the lock is held.
  if (Status status = services_.locks.learn(target, call); !status.is_ok()) return status;
  Status status;
  if (of.region != nullptr) status = run_on_card(of, call);
  if (status.is_ok() && (operation.notify || of.region == nullptr)) status = notify_behind(operation, target);
  if (of.region != nullptr && services_.hearing != nullptr && tells_of_others(operation)) services_.hearing->hear();
  if (status.is_ok() && of.request != nullptr) of.request->done.store(true, std::memory_order_release);
  return status;
}

Status CardPath::run_on_card(const ExecutorCall& of, const char* call) {
  const Operation& operation = of.operation;
  const std::uint32_t target = of.target;
  const std::uint64_t base = of.region->owner_address + (operation.offset - of.region->offset);
  const CardOperation how = is_atomic(operation.kind) ? card_operation(operation) : CardOperation{CardMeans::move};
  if (Status status = order(target, operation); !status.is_ok()) return status;
  services_.counters.count(Path::offload, operation.bytes);

  const PackedOperand operand(operation);
  PackedResult result(operation);
  CardCompletion own;
  const bool is_packed = operand.data() != operation.operand || result.data() != operation.result;
  const bool waits = of.completion != Completion::implicit || is_packed;
  CardCompletion& told = waits ? own : targets_[target].posted;
  // The sides that the kind has no use for may be anything.
  std::byte* const into = returns_data(operation.kind) ? result.data() : nullptr;
  const Call card(*this, {operation, target, base, how, operand.data(), into}, told);
  Status status = card.run();
  note_started(target);
  if (waits) {
    // What failed half-way is waited for, too: the rest of it points here.
    Status waited = await(target, own, call);
    if (status.is_ok()) status = std::move(waited);
    if (status.is_ok()) result.deliver();
  }
  if (status.is_ok() && of.completion == Completion::blocking && !returns_data(operation.kind)) {
    settle(target, call);
    status = services_.messages.take_failure(target, call);
  }
  return status;
}

Status CardPath::notify_behind(const Operation& operation, std::uint32_t target) {
  settle(target, call_name(operation.kind));
  if (Status status = services_.messages.take_failure(target, call_name(operation.kind)); !status.is_ok())
    return status;
  if (services_.notifications.reach(target)) {
    services_.notifications.raise(target, operation.notify_slot);
    return {};
  }
  Operation bare;
  bare.notify = true;
  bare.notify_slot = operation.notify_slot;
  return services_.owner.run(bare, target, Completion::implicit, nullptr);
}

Status CardPath::told(Status status, std::uint32_t target, const char* call) const {
  if (status.is_ok()) return status;
  return {status.code(), fmt::format("{}: the network card: {}", services_.texts.where(call, target), status.text())};
}

// Called after an operation was started: were the mark set before, a flush in between would clear it and not wait for
// the operation.
void CardPath::note_started(std::uint32_t target) {
  // Release pairs with the acquire in begin_settling.
  if (!targets_[target].dirty.exchange(true, std::memory_order_release))
    services_.views[target].outstanding.count.fetch_add(1, std::memory_order_relaxed);
}

Status CardPath::await(std::uint32_t target, CardCompletion& completion, const char* call) {
  Rdma& rdma = *reach_.rdma;
  Status status = rdma.wait(completion, [&] { return services_.waiter.looked_in_vain(call); });
  if (!status.is_ok()) {
    // The job is over: nothing under way may still point at the program's buffers when this returns.
    rdma.abandon();
    services_.messages.fail_all();
    return status;
  }
  // Acquire: what operations brought is here.
  const Code code = completion.failure.exchange(Code::ok, std::memory_order_acquire);
  return services_.texts.answered(target, call, code, "an operation of the network card failed");
}

// ---- flush ----

// Counted before the mark is taken: who finds no mark then sees whoever has taken it.
bool CardPath::begin_settling(std::uint32_t target) {
  CardTarget& card = targets_[target];
  // Acquire: where it is false, that is of who took the mark, whose count is seen behind it.
  if (!card.dirty.load(std::memory_order_acquire)) return false;
  // Relaxed: the exchange below publishes it.
  card.settling.fetch_add(1, std::memory_order_relaxed);
  // Acquire pairs with the release in note_started; release with the acquires of those who find no mark.
  if (!card.dirty.exchange(false, std::memory_order_acq_rel)) {
    stop_settling(target);
    return false;
  }
  targets_[target].last_update.store(no_update, std::memory_order_relaxed);
  services_.messages.note_failure(target, reach_.rdma->flush(services_.ranks[target], targets_[target].posted));
  return true;
}

void CardPath::end_settling(std::uint32_t target, const char* call) {
  services_.messages.note_failure(target, await(target, targets_[target].posted, call));
  // Another thread may wait for it.
  services_.views[target].outstanding.count.fetch_sub(1, std::memory_order_release);
  stop_settling(target);
}

void CardPath::stop_settling(std::uint32_t target) {
  // Release: the card is through for whoever waits for that. It may wait for a thread that has found nothing to settle.
  targets_[target].settling.fetch_sub(1, std::memory_order_release);
  services_.waiter.own_events().notify_all();
}

// What this thread has started may be in the hands of another that settles: it waits for that one.
void CardPath::await_settled(std::uint32_t target, const char* call) {
  const std::atomic<std::uint32_t>& settling = targets_[target].settling;
  // Acquire pairs with stop_settling.
  const auto is_settled = [&settling] { return settling.load(std::memory_order_acquire) == 0; };
  if (is_settled()) return;
  // Where the job is over, whoever looks at what failed learns of it.
  (void)services_.waiter.wait(services_.waiter.own_events(), is_settled, call);
}

void CardPath::settle(std::uint32_t target, const char* call) {
  if (begin_settling(target))
    end_settling(target, call);
  else
    await_settled(target, call);
}

// All are asked before one is waited for.
void CardPath::settle_all(const char* call) {
  std::vector<std::uint32_t> begun;
  // What has begun must end: there is room for all before one does.
  begun.reserve(services_.ranks.size());
  for (std::uint32_t target = 0; target < services_.ranks.size(); ++target) {
    if (begin_settling(target)) begun.push_back(target);
  }
  for (const std::uint32_t target : begun) end_settling(target, call);
  for (std::uint32_t target = 0; target < services_.ranks.size(); ++target) await_settled(target, call);
}

}  // namespace farsum
