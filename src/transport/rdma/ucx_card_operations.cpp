#include "transport/rdma/ucx_card_operations.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t low_bytes(std::uint64_t word, std::uint8_t bytes) {
  return bytes == sizeof word ? word : word & 0xffffffff;
}

constexpr std::uint64_t changed(CardUpdate update, std::uint64_t word, std::uint64_t operand) {
  if (update == CardUpdate::bit_or) return word | operand;
  return update == CardUpdate::bit_xor ? word ^ operand : word & operand;
}

bool is_for_want_of_room(ucs_status_t status) { return status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE; }

}  // namespace

// UCX reads and writes the words here, so that the caller's are not touched after end_all().
struct UcxCardOperations::Operation {
  UcxCardOperations* operations = nullptr;
  UcxCardPeer* peer = nullptr;
  CardCompletion* completion = nullptr;  // may be null
  std::byte* result = nullptr;           // may be null
  std::uint8_t result_bytes = 0;
  bool is_under_way = false;
  bool is_flush = false;
  std::uint64_t flushes = 0;  // so many of the peer's operations
  // What follows is of a fetch that is done by comparing until what was there is known.
  bool compares = false;
  UcxReached reached;
  UcxWord word{};
  std::uint64_t change = 0;  // its operand

  std::uint64_t operand = 0;  // compared: what is taken to be there
  std::uint64_t reply = 0;
};

UcxCardOperations::UcxCardOperations(const UcxCard& card, UcxCardPeers& peers, CardWaits& waits)
    : card_(card), peers_(peers), waits_(waits) {}

UcxCardOperations::~UcxCardOperations() = default;

// Whether there is an answer: a comparison has one where what was there was what it was taken for.
bool UcxCardOperations::has_answer(const Operation& operation) {
  return !operation.compares || low_bytes(operation.reply, operation.word.bytes) == operation.operand;
}

// What UCX calls, always from within one of the calls made here.
struct UcxCardOperations::Callbacks {
  static void on_end(void* request, ucs_status_t status, void* argument) {
    auto& operation = *static_cast<Operation*>(argument);
    operation.operations->calls().request_free(request);
    operation.operations->on_end(operation, status);
  }
};

UcxEnd UcxCardOperations::end_of(Operation& operation) { return {Callbacks::on_end, &operation}; }

void UcxCardOperations::on_end(Operation& operation, ucs_status_t status) {
  if (status != UCS_OK) peers_.note_broken(*operation.peer, calls().status_string(status));
  const bool went_well = status == UCS_OK && operation.peer->broken.empty();
  if (went_well && ((operation.is_flush && card_.confirms) || !has_answer(operation))) {
    unfinished_.push_back(&operation);
  } else {
    end(operation, went_well);
  }
}

UcxCardOperations::Operation& UcxCardOperations::take(UcxCardPeer& peer, CardCompletion* completion) {
  Operation* operation = nullptr;
  if (free_.empty()) {
    operation = &operations_.emplace_back();
  } else {
    operation = free_.back();
    free_.pop_back();
  }
  *operation = {};
  operation->operations = this;
  operation->peer = &peer;
  operation->completion = completion;
  return *operation;
}

template <class Start>
Status UcxCardOperations::begin_counted(Operation& operation, Start start) {
  ++operation.peer->started;
  return begin(operation, start);
}

template <class Start>
Status UcxCardOperations::begin(Operation& operation, Start start) {
  const ucs_status_ptr_t request = start(end_of(operation));
  const bool is_to_confirm = request == nullptr && operation.is_flush && card_.confirms;
  if (is_to_confirm) unfinished_.push_back(&operation);
  if (UCS_PTR_IS_PTR(request) || is_to_confirm) {
    operation.is_under_way = true;
    ++under_way_;
    // Relaxed: whoever waits for it has started it, or learnt of that from who did.
    if (operation.completion != nullptr) operation.completion->pending.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (request == nullptr) {
    end(operation, true);
    return {};
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  UcxCardPeer& peer = *operation.peer;
  free_.push_back(&operation);
  const std::string why = calls().status_string(status);
  if (is_for_want_of_room(status)) return {Code::no_memory, fmt::format("UCX: towards rank {}: {}", peer.rank, why)};
  peers_.note_broken(peer, why);
  return {Code::peer_failed, fmt::format("the card's connection to rank {} broke: {}", peer.rank, why)};
}

void UcxCardOperations::end(Operation& operation, bool went_well) {
  if (went_well && operation.result != nullptr) {
    std::memcpy(operation.result, &operation.reply, operation.result_bytes);
  }
  UcxCardPeer& peer = *operation.peer;
  if (went_well) peer.confirmed = std::max(peer.confirmed, operation.flushes);
  free_.push_back(&operation);
  if (!std::exchange(operation.is_under_way, false)) return;
  --under_way_;
  CardCompletion* completion = operation.completion;
  if (completion == nullptr) return;
  // Relaxed: the release of the count publishes it.
  if (!went_well) completion->failure.store(Code::peer_failed, std::memory_order_relaxed);
  // Publishes the bytes that came, and hands the completion back; pairs with the acquire in is_over. Whoever has seen
  // it may free the completion.
  completion->pending.fetch_sub(1, std::memory_order_release);
  waits_.note_ended();
}

Status UcxCardOperations::put(Rdma::Reached memory, std::uint64_t address, std::span<const std::byte> from,
                              CardCompletion& completion) {
  UcxCardReach* found = nullptr;
  if (Status refused = peers_.find(memory, address, from.size(), found); !refused.is_ok() || from.empty())
    return refused;
  return begin_counted(take(*found->peer, &completion),
                       [&](UcxEnd end) { return ucx_put(calls(), found->asked(), address, from, end); });
}

Status UcxCardOperations::get(Rdma::Reached memory, std::uint64_t address, std::span<std::byte> into,
                              CardCompletion& completion) {
  UcxCardReach* found = nullptr;
  if (Status refused = peers_.find(memory, address, into.size(), found); !refused.is_ok() || into.empty())
    return refused;
  return begin_counted(take(*found->peer, &completion),
                       [&](UcxEnd end) { return ucx_get(calls(), found->asked(), address, into, end); });
}

Status UcxCardOperations::update(Rdma::Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) {
  if (update == CardUpdate::compare_and_swap) return {Code::argument, "a compare-and-swap has a result"};
  UcxCardReach* found = nullptr;
  if (Status refused = peers_.find_word(memory, word, found); !refused.is_ok()) return refused;
  Operation& operation = take(*found->peer, nullptr);
  operation.operand = operand;
  const UcxReached reached = found->asked();
  const UcxWord asked{word.address, word.bytes, update};
  return begin_counted(operation, [&](UcxEnd end) {
    // UCX swaps with a result only.
    return update == CardUpdate::swap ? ucx_fetch(calls(), reached, asked, operation.operand, operation.reply, end)
                                      : ucx_update(calls(), reached, asked, operation.operand, end);
  });
}

Status UcxCardOperations::fetch(Rdma::Reached memory, CardWord word, CardUpdate update, std::uint64_t operand,
                                std::uint64_t compare, std::byte* result, CardCompletion& completion) {
  UcxCardReach* found = nullptr;
  if (Status refused = peers_.find_word(memory, word, found); !refused.is_ok()) return refused;
  Operation& operation = take(*found->peer, &completion);
  const bool compares = update == CardUpdate::compare_and_swap;
  operation.operand = compares ? compare : operand;
  operation.reply = compares ? operand : 0;
  operation.result = result;
  operation.result_bytes = word.bytes;
  if (!card_.fetches_bits && is_of_bits(update)) {
    operation.compares = true;
    operation.reached = found->asked();
    operation.word = {word.address, word.bytes, update};
    operation.change = operand;
    operation.operand = operation.reply = 0;
    return begin_counted(operation, [&](UcxEnd end) { return compare_until_known(operation, end); });
  }
  return begin_counted(operation, [&](UcxEnd end) {
    return ucx_fetch(calls(), found->asked(), {word.address, word.bytes, update}, operation.operand, operation.reply,
                     end);
  });
}

// It begins with what is taken to be there, and ends with a request or the answer.
ucs_status_ptr_t UcxCardOperations::compare_until_known(Operation& operation, UcxEnd end) {
  const UcxWord word{operation.word.address, operation.word.bytes, CardUpdate::compare_and_swap};
  do {
    operation.operand = low_bytes(operation.reply, word.bytes);
    operation.reply = low_bytes(changed(operation.word.update, operation.operand, operation.change), word.bytes);
    const ucs_status_ptr_t request =
        ucx_fetch(calls(), operation.reached, word, operation.operand, operation.reply, end);
    if (request != nullptr) return request;
  } while (!has_answer(operation));
  return nullptr;
}

// UCX's fence orders nothing between lanes.
std::optional<Status> UcxCardOperations::fence(Rank peer) {
  UcxCardPeer* const to = peers_.find(peer);
  if (to == nullptr || to->started == to->confirmed) return Status();
  if (Status status = peers_.connect(*to); !status.is_ok()) return status;
  if (!to->is_one_lane) return std::nullopt;
  return peers_.fence();
}

Status UcxCardOperations::flush(Rank peer, CardCompletion& completion) {
  UcxCardPeer* const known = peers_.find(peer);
  if (known == nullptr || known->started == known->confirmed) return {};
  UcxCardPeer& to = *known;
  if (Status status = peers_.connect(to); !status.is_ok()) return status;
  Operation& operation = take(to, &completion);
  operation.is_flush = true;
  operation.flushes = to.started;
  return begin(operation, [&](UcxEnd end) { return ucx_flush(calls(), to.endpoint, end); });
}

// A card's answer to a write says that the owner's card has it. An answer with data from the same memory comes after
// what that card wrote before, so the owner's loads see it.
void UcxCardOperations::confirm(Operation& operation) {
  UcxCardPeer& peer = *operation.peer;
  operation.is_flush = false;
  const UcxCardReach* const memory = peers_.any_memory_of(peer);
  if (memory == nullptr) return end(operation, true);
  const std::size_t bytes = std::min<std::uint64_t>(memory->key.bytes, sizeof operation.reply);
  const std::span<std::byte> into = std::as_writable_bytes(std::span(&operation.reply, 1)).first(bytes);
  go_on(operation, ucx_get(calls(), memory->asked(), memory->key.begin, into, end_of(operation)));
}

// A step of one that is under way was asked for.
void UcxCardOperations::go_on(Operation& operation, ucs_status_ptr_t answer) {
  if (UCS_PTR_IS_PTR(answer)) return;
  if (answer != nullptr) peers_.note_broken(*operation.peer, calls().status_string(UCS_PTR_STATUS(answer)));
  end(operation, answer == nullptr);
}

void UcxCardOperations::take_in_unfinished() {
  while (!unfinished_.empty()) {
    Operation& operation = *unfinished_.back();
    unfinished_.pop_back();
    if (peers_.has_given_up() || !operation.peer->broken.empty()) {
      end(operation, false);
    } else if (operation.compares) {
      go_on(operation, compare_until_known(operation, end_of(operation)));
    } else {
      confirm(operation);
    }
  }
}

void UcxCardOperations::end_all() {
  for (Operation& operation : operations_) {
    if (operation.is_under_way) end(operation, false);
  }
}

}  // namespace farsum
