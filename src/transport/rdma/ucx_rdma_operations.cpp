// Operations of UcxRdma: how each begins, how it ends, and what a broken connection does to them.
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "transport/rdma/ucx_rdma.hpp"
#include "transport/rdma/ucx_rdma_parts.hpp"
#include "transport/ucx/ucx_printed.hpp"

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

// Whether there is an answer: a comparison has one where what was there was what it was taken for.
bool UcxRdma::has_answer(const Operation& operation) {
  return !operation.compares || low_bytes(operation.reply, operation.word.bytes) == operation.operand;
}

// What UCX calls, always from within one of the calls made here.
struct UcxRdma::Callbacks {
  static void on_end(void* request, ucs_status_t status, void* argument) {
    auto& operation = *static_cast<Operation*>(argument);
    UcxRdma& rdma = operation.peer->rdma;
    rdma.context_->calls().request_free(request);
    if (status != UCS_OK) rdma.note_broken(*operation.peer, rdma.context_->calls().status_string(status));
    const bool went_well = status == UCS_OK && operation.peer->broken.empty();
    if (went_well && ((operation.is_flush && rdma.confirms_) || !has_answer(operation))) {
      rdma.unfinished_.push_back(&operation);
    } else {
      rdma.end(operation, went_well);
    }
  }

  static void on_lost(void* argument, ucp_ep_h, ucs_status_t status) {
    auto& peer = *static_cast<Peer*>(argument);
    peer.rdma.note_broken(peer, peer.rdma.context_->calls().status_string(status));
  }

  static void on_closed(void* request, ucs_status_t, void* argument) {
    auto& peer = *static_cast<Peer*>(argument);
    peer.rdma.context_->calls().request_free(request);
    peer.closed = true;
  }
};

Status UcxRdma::connect(Peer& peer) {
  if (abandoned_) return {Code::peer_failed, "the job is over"};
  if (!peer.broken.empty()) {
    return {Code::peer_failed, fmt::format("the card's connection to rank {} broke: {}", peer.rank, peer.broken)};
  }
  if (!peer.refusal.empty()) return {Code::unsupported, peer.refusal};
  if (peer.endpoint != nullptr) return {};
  if (peer.address.empty()) {
    return {Code::argument, fmt::format("what rank {} gave as its card's address is none", peer.rank)};
  }
  auto endpoint = ucx_connect(*context_, asking_.handle, peer.address, {Callbacks::on_lost, &peer});
  if (!endpoint.is_ok()) {
    return {Code::unreachable, fmt::format("rank {}: {}", peer.rank, endpoint.take_status().text())};
  }
  peer.endpoint = endpoint.value();
  return look_at_lanes(peer);
}

// UCX chooses for each endpoint anew, by what both ends have.
Status UcxRdma::look_at_lanes(Peer& peer) const {
  const std::string printed =
      printed_by([&](std::FILE* stream) { context_->calls().ep_print_info(peer.endpoint, stream); });
  const std::vector<UcxResource> lanes = lanes_in(printed);
  peer.is_one_lane = lanes.size() == 1;
  if (!tells_lanes_ || !update_lane_in(printed).transport.empty()) return {};
  for (const UcxResource& lane : lanes) {
    peer.refusal += fmt::format("{}{}/{}", peer.refusal.empty() ? "" : ", ", lane.transport, lane.device);
  }
  peer.refusal = fmt::format("no card reaches the memory of rank {} by itself over {}", peer.rank, peer.refusal);
  return {Code::unsupported, peer.refusal};
}

Status UcxRdma::prepare(Memory& memory) {
  if (Status status = connect(*memory.peer); !status.is_ok()) return status;
  if (memory.key != nullptr) return {};
  const ucs_status_t status =
      context_->calls().ep_rkey_unpack(memory.peer->endpoint, memory.packed.data(), &memory.key);
  if (status == UCS_OK) return {};
  memory.key = nullptr;
  return {Code::argument, fmt::format("UCX: the key to memory of rank {} is refused: {}", memory.rank,
                                      context_->calls().status_string(status))};
}

Status UcxRdma::find(Reached memory, std::uint64_t address, std::uint64_t bytes, Memory*& found) {
  const auto known = reached_.find(memory);
  if (known == reached_.end()) return {Code::argument, "memory that was let go, or never reached"};
  found = known->second.get();
  if (found->peer == nullptr) return {Code::argument, fmt::format("rank {} was never introduced", found->rank)};
  if (!found->is_valid) return {Code::argument, fmt::format("what rank {} gave as a key is none", found->rank)};
  if (address < found->begin || bytes > found->bytes || address - found->begin > found->bytes - bytes) {
    return {Code::range, fmt::format("{} bytes at {:#x} are not within the {} bytes that rank {} exposed at {:#x}",
                                     bytes, address, found->bytes, found->rank, found->begin)};
  }
  return bytes == 0 ? Status() : prepare(*found);
}

Status UcxRdma::find_word(Reached memory, CardWord word, Memory*& found) {
  if (word.bytes != 4 && word.bytes != 8) {
    return {Code::type, fmt::format("cards update words of 4 and 8 bytes, none of {}", word.bytes)};
  }
  if (word.bytes == 4 && !updates_short_words_) {
    return {Code::unsupported, fmt::format("{} updates words of 8 bytes only", description_)};
  }
  if (word.address % word.bytes != 0) {
    return {Code::alignment, fmt::format("a word of {} bytes at {:#x}", word.bytes, word.address)};
  }
  return find(memory, word.address, word.bytes, found);
}

UcxRdma::Operation& UcxRdma::take(Peer& peer, CardCompletion* completion) {
  Operation* operation = nullptr;
  if (free_operations_.empty()) {
    operation = &operations_.emplace_back();
  } else {
    operation = free_operations_.back();
    free_operations_.pop_back();
  }
  *operation = {};
  operation->peer = &peer;
  operation->completion = completion;
  return *operation;
}

template <class Start>
Status UcxRdma::begin_counted(Operation& operation, Start start) {
  ++operation.peer->started;
  return begin(operation, start);
}

template <class Start>
Status UcxRdma::begin(Operation& operation, Start start) {
  const ucs_status_ptr_t request = start(UcxEnd{Callbacks::on_end, &operation});
  const bool is_to_confirm = request == nullptr && operation.is_flush && confirms_;
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
  Peer& peer = *operation.peer;
  free_operations_.push_back(&operation);
  const std::string why = context_->calls().status_string(status);
  if (is_for_want_of_room(status)) return {Code::no_memory, fmt::format("UCX: towards rank {}: {}", peer.rank, why)};
  note_broken(peer, why);
  return {Code::peer_failed, fmt::format("the card's connection to rank {} broke: {}", peer.rank, why)};
}

void UcxRdma::end(Operation& operation, bool went_well) {
  if (went_well && operation.result != nullptr) {
    std::memcpy(operation.result, &operation.reply, operation.result_bytes);
  }
  Peer& peer = *operation.peer;
  if (went_well) peer.confirmed = std::max(peer.confirmed, operation.flushes);
  free_operations_.push_back(&operation);
  if (!std::exchange(operation.is_under_way, false)) return;
  --under_way_;
  CardCompletion* completion = operation.completion;
  if (completion == nullptr) return;
  // Relaxed: the release of the count publishes it.
  if (!went_well) completion->failure.store(Code::peer_failed, std::memory_order_relaxed);
  // Publishes the bytes that came, and hands the completion back; pairs with the acquire in is_over. Whoever has seen
  // it may free the completion.
  completion->pending.fetch_sub(1, std::memory_order_release);
  ended_.notify_all();
  if (std::exchange(watcher_sleeps_, false)) eventfd_write(bell_, 1);
}

Status UcxRdma::put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
                    CardCompletion& completion) {
  const Inside inside(*this);
  Memory* found = nullptr;
  if (Status refused = find(memory, address, from.size(), found); !refused.is_ok() || from.empty()) return refused;
  return begin_counted(take(*found->peer, &completion), [&](UcxEnd end) {
    return ucx_put(context_->calls(), {found->peer->endpoint, found->key}, address, from, end);
  });
}

Status UcxRdma::get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) {
  const Inside inside(*this);
  Memory* found = nullptr;
  if (Status refused = find(memory, address, into.size(), found); !refused.is_ok() || into.empty()) return refused;
  return begin_counted(take(*found->peer, &completion), [&](UcxEnd end) {
    return ucx_get(context_->calls(), {found->peer->endpoint, found->key}, address, into, end);
  });
}

Status UcxRdma::update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) {
  if (update == CardUpdate::compare_and_swap) return {Code::argument, "a compare-and-swap has a result"};
  const Inside inside(*this);
  Memory* found = nullptr;
  if (Status refused = find_word(memory, word, found); !refused.is_ok()) return refused;
  Operation& operation = take(*found->peer, nullptr);
  operation.operand = operand;
  const UcxReached reached{found->peer->endpoint, found->key};
  const UcxWord asked{word.address, word.bytes, update};
  return begin_counted(operation, [&](UcxEnd end) {
    // UCX swaps with a result only.
    return update == CardUpdate::swap
               ? ucx_fetch(context_->calls(), reached, asked, operation.operand, operation.reply, end)
               : ucx_update(context_->calls(), reached, asked, operation.operand, end);
  });
}

Status UcxRdma::fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
                      std::byte* result, CardCompletion& completion) {
  const Inside inside(*this);
  Memory* found = nullptr;
  if (Status refused = find_word(memory, word, found); !refused.is_ok()) return refused;
  Operation& operation = take(*found->peer, &completion);
  const bool compares = update == CardUpdate::compare_and_swap;
  operation.operand = compares ? compare : operand;
  operation.reply = compares ? operand : 0;
  operation.result = result;
  operation.result_bytes = word.bytes;
  if (!fetches_bits_ && is_of_bits(update)) {
    operation.compares = true;
    operation.reached = {found->peer->endpoint, found->key};
    operation.word = {word.address, word.bytes, update};
    operation.change = operand;
    operation.operand = operation.reply = 0;
    return begin_counted(operation, [&](UcxEnd end) { return compare_until_known(operation, end); });
  }
  return begin_counted(operation, [&](UcxEnd end) {
    return ucx_fetch(context_->calls(), {found->peer->endpoint, found->key}, {word.address, word.bytes, update},
                     operation.operand, operation.reply, end);
  });
}

// It begins with what is taken to be there, and ends with a request or the answer.
void* UcxRdma::compare_until_known(Operation& operation, UcxEnd end) {
  const UcxWord word{operation.word.address, operation.word.bytes, CardUpdate::compare_and_swap};
  do {
    operation.operand = low_bytes(operation.reply, word.bytes);
    operation.reply = low_bytes(changed(operation.word.update, operation.operand, operation.change), word.bytes);
    const ucs_status_ptr_t request =
        ucx_fetch(context_->calls(), operation.reached, word, operation.operand, operation.reply, end);
    if (request != nullptr) return request;
  } while (!has_answer(operation));
  return nullptr;
}

void UcxRdma::compare_again(Operation& operation) {
  const ucs_status_ptr_t request = compare_until_known(operation, UcxEnd{Callbacks::on_end, &operation});
  if (UCS_PTR_IS_PTR(request)) return;
  if (request != nullptr) note_broken(*operation.peer, context_->calls().status_string(UCS_PTR_STATUS(request)));
  end(operation, request == nullptr);
}

// UCX's fence orders nothing between lanes.
Status UcxRdma::fence(Rank peer) {
  {
    const Inside inside(*this);
    const auto known = peers_.find(peer);
    if (known == peers_.end() || known->second->started == known->second->confirmed) return {};
    if (Status status = connect(*known->second); !status.is_ok()) return status;
    if (known->second->is_one_lane) {
      const ucs_status_t status = context_->calls().worker_fence(asking_.handle);
      if (status == UCS_OK) return {};
      return {Code::system, fmt::format("UCX: a fence failed: {}", context_->calls().status_string(status))};
    }
  }
  CardCompletion completion;
  Status status = flush(peer, completion);
  if (status.is_ok()) status = wait(completion, [] { return Status(); });
  if (!status.is_ok()) return status;
  // Relaxed: wait() has acquired it.
  if (completion.failure.load(std::memory_order_relaxed) == Code::ok) return {};
  return {Code::peer_failed, fmt::format("the card's connection to rank {} broke", peer)};
}

Status UcxRdma::flush(Rank peer, CardCompletion& completion) {
  const Inside inside(*this);
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return {};
  Peer& to = *known->second;
  if (to.started == to.confirmed) return {};
  if (Status status = connect(to); !status.is_ok()) return status;
  Operation& operation = take(to, &completion);
  operation.is_flush = true;
  operation.flushes = to.started;
  return begin(operation, [&](UcxEnd end) { return ucx_flush(context_->calls(), to.endpoint, end); });
}

// A card's answer to a write says that the owner's card has it. An answer with data from the same memory comes after
// what that card wrote before, so the owner's loads see it.
void UcxRdma::confirm(Operation& operation) {
  Peer& peer = *operation.peer;
  operation.is_flush = false;
  const auto is_there = [&peer](const auto& entry) {
    return entry.second->peer == &peer && entry.second->key != nullptr;
  };
  const auto found = std::find_if(reached_.begin(), reached_.end(), is_there);
  if (found == reached_.end()) return end(operation, true);
  const Memory& memory = *found->second;
  const std::size_t bytes = std::min<std::uint64_t>(memory.bytes, sizeof operation.reply);
  const std::span<std::byte> into = std::as_writable_bytes(std::span(&operation.reply, 1)).first(bytes);
  const ucs_status_ptr_t request =
      ucx_get(context_->calls(), {peer.endpoint, memory.key}, memory.begin, into, {Callbacks::on_end, &operation});
  if (UCS_PTR_IS_PTR(request)) return;
  if (request != nullptr) note_broken(peer, context_->calls().status_string(UCS_PTR_STATUS(request)));
  end(operation, request == nullptr);
}

void UcxRdma::note_broken(Peer& peer, const std::string& why) {
  if (!peer.broken.empty() || abandoned_) return;
  peer.broken = why;
  broken_.push_back(&peer);
  // It is told at once: whoever sees an operation end so looks for who is lost.
  if (options_.job.on_lost)
    options_.job.on_lost(peer.rank, fmt::format("the card's connection to rank {} broke: {}", peer.rank, why));
}

// Never called from within a call of UCX's.
void UcxRdma::close(Peer& peer) {
  if (peer.endpoint == nullptr || peer.closing) return;
  peer.closing = true;
  if (!UCS_PTR_IS_PTR(ucx_close(*context_, peer.endpoint, {Callbacks::on_closed, &peer}))) peer.closed = true;
}

// What was under way over a broken endpoint ends with it.
void UcxRdma::take_in_ended() {
  while (!unfinished_.empty()) {
    Operation* operation = unfinished_.back();
    unfinished_.pop_back();
    if (abandoned_ || !operation->peer->broken.empty()) {
      end(*operation, false);
    } else if (operation->compares) {
      compare_again(*operation);
    } else {
      confirm(*operation);
    }
  }
  while (!broken_.empty()) {
    Peer* peer = broken_.back();
    broken_.pop_back();
    close(*peer);
  }
}

void UcxRdma::close_all() {
  const auto is_closed = [](const auto& entry) { return entry.second->endpoint == nullptr || entry.second->closed; };
  for (const auto& [rank, peer] : peers_) close(*peer);
  for (int i = 0; i < most_closing_rounds; ++i) {
    if (under_way_ == 0 && std::all_of(peers_.begin(), peers_.end(), is_closed)) return;
    context_->calls().worker_progress(asking_.handle);
    take_in_ended();
  }
}

void UcxRdma::abandon() {
  const Inside inside(*this);
  if (std::exchange(abandoned_, true)) return;
  close_all();
  // UCX works no more from here on, so what it has not ended it does not touch either.
  for (Operation& operation : operations_) {
    if (operation.is_under_way) end(operation, false);
  }
}

}  // namespace farsum
