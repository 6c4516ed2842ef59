#include "transport/rdma/ucx_card_peers.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_printed.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum {

// What UCX calls, always from within one of the calls made here.
struct UcxCardPeers::Callbacks {
  static void on_lost(void* argument, ucp_ep_h, ucs_status_t status) {
    auto& peer = *static_cast<UcxCardPeer*>(argument);
    peer.peers.note_broken(peer, peer.peers.calls().status_string(status));
  }

  static void on_closed(void* request, ucs_status_t, void* argument) {
    auto& peer = *static_cast<UcxCardPeer*>(argument);
    peer.peers.calls().request_free(request);
    peer.closed = true;
  }
};

Result<std::unique_ptr<UcxCardPeers>> UcxCardPeers::make(const UcxCard& card, OnLost on_lost) {
  auto worker = make_worker(*card.context);
  if (!worker.is_ok()) return worker.take_status();
  return std::unique_ptr<UcxCardPeers>(new UcxCardPeers(card, std::move(worker.value()), std::move(on_lost)));
}

UcxCardPeers::UcxCardPeers(const UcxCard& card, UcxBareWorker worker, OnLost on_lost)
    : card_(card), worker_(std::move(worker)), on_lost_(std::move(on_lost)) {}

UcxCardPeers::~UcxCardPeers() {
  for (const auto& [id, memory] : reached_) {
    if (memory->handle != nullptr) calls().rkey_destroy(memory->handle);
  }
  end_worker(*card_.context, worker_);
}

void UcxCardPeers::introduce(Rank peer, std::span<const std::byte> address) {
  auto& known = peers_[peer];
  if (known) return;
  known = std::make_unique<UcxCardPeer>(*this, peer);
  if (const auto content = unsealed(UcxSeal::address, address)) known->address.assign(content->begin(), content->end());
}

Rdma::Reached UcxCardPeers::reach(Rank peer, std::span<const std::byte> key) {
  auto memory = std::make_unique<UcxCardReach>();
  memory->rank = peer;
  memory->peer = find(peer);
  if (auto given = unsealed_key(key)) {
    memory->is_valid = true;
    memory->key = std::move(*given);
  }
  reached_.emplace(next_reached_, std::move(memory));
  return next_reached_++;
}

void UcxCardPeers::let_go(Rdma::Reached memory) {
  const auto found = reached_.find(memory);
  if (found == reached_.end()) return;
  if (found->second->handle != nullptr) calls().rkey_destroy(found->second->handle);
  reached_.erase(found);
}

UcxCardPeer* UcxCardPeers::find(Rank peer) {
  const auto known = peers_.find(peer);
  return known == peers_.end() ? nullptr : known->second.get();
}

Status UcxCardPeers::find(Rdma::Reached memory, std::uint64_t address, std::uint64_t bytes, UcxCardReach*& found) {
  const auto known = reached_.find(memory);
  if (known == reached_.end()) return {Code::argument, "memory that was let go, or never reached"};
  found = known->second.get();
  if (found->peer == nullptr) return {Code::argument, fmt::format("rank {} was never introduced", found->rank)};
  if (!found->is_valid) return {Code::argument, fmt::format("what rank {} gave as a key is none", found->rank)};
  const std::uint64_t begin = found->key.begin, all = found->key.bytes;
  if (address < begin || bytes > all || address - begin > all - bytes) {
    return {Code::range, fmt::format("{} bytes at {:#x} are not within the {} bytes that rank {} exposed at {:#x}",
                                     bytes, address, all, found->rank, begin)};
  }
  return bytes == 0 ? Status() : prepare(*found);
}

Status UcxCardPeers::find_word(Rdma::Reached memory, CardWord word, UcxCardReach*& found) {
  if (word.bytes != 4 && word.bytes != 8) {
    return {Code::type, fmt::format("cards update words of 4 and 8 bytes, none of {}", word.bytes)};
  }
  if (word.bytes == 4 && !card_.updates_short_words) {
    return {Code::unsupported, fmt::format("{} updates words of 8 bytes only", card_.description)};
  }
  if (word.address % word.bytes != 0) {
    return {Code::alignment, fmt::format("a word of {} bytes at {:#x}", word.bytes, word.address)};
  }
  return find(memory, word.address, word.bytes, found);
}

const UcxCardReach* UcxCardPeers::any_memory_of(const UcxCardPeer& peer) const {
  const auto found = std::find_if(reached_.begin(), reached_.end(), [&peer](const auto& entry) {
    return entry.second->peer == &peer && entry.second->handle != nullptr;
  });
  return found == reached_.end() ? nullptr : found->second.get();
}

Status UcxCardPeers::prepare(UcxCardReach& memory) {
  if (Status status = connect(*memory.peer); !status.is_ok()) return status;
  if (memory.handle != nullptr) return {};
  const ucs_status_t status = calls().ep_rkey_unpack(memory.peer->endpoint, memory.key.packed.data(), &memory.handle);
  if (status == UCS_OK) return {};
  memory.handle = nullptr;
  return {Code::argument,
          fmt::format("UCX: the key to memory of rank {} is refused: {}", memory.rank, calls().status_string(status))};
}

Status UcxCardPeers::connect(UcxCardPeer& peer) {
  if (has_given_up_) return {Code::peer_failed, "the job is over"};
  if (!peer.broken.empty()) {
    return {Code::peer_failed, fmt::format("the card's connection to rank {} broke: {}", peer.rank, peer.broken)};
  }
  if (!peer.refusal.empty()) return {Code::unsupported, peer.refusal};
  if (peer.endpoint != nullptr) return {};
  if (peer.address.empty()) {
    return {Code::argument, fmt::format("what rank {} gave as its card's address is none", peer.rank)};
  }
  auto endpoint = ucx_connect(*card_.context, worker_.handle, peer.address, {Callbacks::on_lost, &peer});
  if (!endpoint.is_ok()) {
    return {Code::unreachable, fmt::format("rank {}: {}", peer.rank, endpoint.take_status().text())};
  }
  peer.endpoint = endpoint.value();
  return look_at_lanes(peer);
}

// UCX chooses for each endpoint anew, by what both ends have.
Status UcxCardPeers::look_at_lanes(UcxCardPeer& peer) const {
  const std::string printed = printed_by([&](std::FILE* stream) { calls().ep_print_info(peer.endpoint, stream); });
  const std::vector<UcxResource> lanes = lanes_in(printed);
  peer.is_one_lane = lanes.size() == 1;
  if (!card_.tells_lanes || !update_lane_in(printed).transport.empty()) return {};
  for (const UcxResource& lane : lanes) {
    peer.refusal += fmt::format("{}{}/{}", peer.refusal.empty() ? "" : ", ", lane.transport, lane.device);
  }
  peer.refusal = fmt::format("no card reaches the memory of rank {} by itself over {}", peer.rank, peer.refusal);
  return {Code::unsupported, peer.refusal};
}

Status UcxCardPeers::fence() {
  const ucs_status_t status = calls().worker_fence(worker_.handle);
  if (status == UCS_OK) return {};
  return {Code::system, fmt::format("UCX: a fence failed: {}", calls().status_string(status))};
}

void UcxCardPeers::note_broken(UcxCardPeer& peer, const std::string& why) {
  if (!peer.broken.empty() || has_given_up_) return;
  peer.broken = why;
  broken_.push_back(&peer);
  // It is told at once: whoever sees an operation end so looks for who is lost.
  if (on_lost_) on_lost_(peer.rank, fmt::format("the card's connection to rank {} broke: {}", peer.rank, why));
}

void UcxCardPeers::close_broken() {
  while (!broken_.empty()) {
    UcxCardPeer* peer = broken_.back();
    broken_.pop_back();
    close(*peer);
  }
}

void UcxCardPeers::close(UcxCardPeer& peer) {
  if (peer.endpoint == nullptr || peer.closing) return;
  peer.closing = true;
  if (!UCS_PTR_IS_PTR(ucx_close(*card_.context, peer.endpoint, {Callbacks::on_closed, &peer}))) peer.closed = true;
}

void UcxCardPeers::give_up() {
  has_given_up_ = true;
  for (const auto& [rank, peer] : peers_) close(*peer);
}

bool UcxCardPeers::are_closed() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->endpoint == nullptr || entry.second->closed; });
}

unsigned UcxCardPeers::progress() { return calls().worker_progress(worker_.handle); }

bool UcxCardPeers::arm() { return calls().worker_arm(worker_.handle) == UCS_OK; }

}  // namespace farsum
