#include "transport/shm/shm_transport.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/no_room.hpp"

namespace farsum {
namespace {

constexpr const char* no_channel =
    "the node has no room for a channel to the target: free some of its memory, or set a smaller FARSUM_CHANNEL_BYTES";

// The word of a channel is this, instead of an offset, where its receiver cannot map the ring.
constexpr std::uint64_t refused_channel = ~std::uint64_t{0};

Transfer transfer_of(os::AttachError error) {
  switch (error) {
    case os::AttachError::none:
      return Transfer::done;
    case os::AttachError::bad_remote_address:
    case os::AttachError::bad_local_address:
      return Transfer::bad_address;
    case os::AttachError::refused:
    case os::AttachError::unsupported:
    case os::AttachError::failed:
      return Transfer::refused;
    case os::AttachError::gone:
      return Transfer::peer_dead;
  }
  return Transfer::refused;
}

// Calls `copy(pieces)` with the kernel's own form of the pieces, as many at a time as it takes in one call.
template <class Copy>
Transfer in_batches(std::span<const TransferPiece> pieces, Copy&& copy) {
  std::array<os::AttachPiece, 64> batch;
  while (!pieces.empty()) {
    const std::size_t count = std::min(pieces.size(), batch.size());
    for (std::size_t i = 0; i < count; ++i) batch[i] = {pieces[i].remote_address, pieces[i].local, pieces[i].bytes};
    const Transfer how = transfer_of(copy(std::span<const os::AttachPiece>(batch).first(count)).error);
    if (how != Transfer::done) return how;
    pieces = pieces.subspan(count);
  }
  return Transfer::done;
}

}  // namespace

ShmTransport::ShmTransport(NodeSegment& segment, Options options)
    : segment_(segment), options_(options), own_(os::own_attach_calls()), peers_(segment.ranks()) {
  // To its own memory a process needs nobody's leave.
  peers_[options_.rank].attach_allowed = true;
}

void ShmTransport::probe_peers() {
  for (Rank peer = 0; peer < peers_.size(); ++peer) {
    if (peer == options_.rank) continue;
    if (!options_.allow_attach) {
      peers_[peer].attach_refusal = "copies between processes are switched off (FARSUM_ATTACH=refuse)";
      continue;
    }
    RankBlock& block = segment_.rank(peer);
    // Relaxed: the join that all ranks have gone through orders these.
    const os::Attach::Probe probe = attach_.probe(pid_of(peer), block.nonce_address.load(std::memory_order_relaxed),
                                                  block.nonce.load(std::memory_order_relaxed));
    peers_[peer].attach_allowed = probe.allowed;
    peers_[peer].attach_refusal = probe.reason;
  }
}

const std::string& ShmTransport::first_attach_refusal() const {
  const auto refused =
      std::find_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.attach_refusal.empty(); });
  return (refused == peers_.end() ? peers_[options_.rank] : *refused).attach_refusal;
}

pid_t ShmTransport::pid_of(Rank peer) const { return segment_.rank(peer).pid.load(std::memory_order_relaxed); }

Capabilities ShmTransport::capabilities(Rank peer) const {
  const std::size_t record_bytes = options_.channel_bytes / 4 - cache_line_bytes;
  return {.transfers = peers_[peer].attach_allowed,
          .late_replies = false,
          .max_message_bytes = record_bytes,
          .max_reply_bytes = record_bytes};
}

// False: there is no room for a ring at the moment.
bool ShmTransport::open_sender(Rank peer) {
  const Result<HeapExtent> extent = segment_.allocate(RingShared::footprint(options_.channel_bytes), options_.rank + 1);
  if (!extent.is_ok()) return false;
  if (!segment_.reach(extent.value()).is_ok()) {
    segment_.release(extent.value(), options_.rank + 1);
    peers_[peer].is_refused = true;
    return true;
  }
  auto* ring = reinterpret_cast<RingShared*>(segment_.at(extent.value().offset));
  peers_[peer].sender = std::make_unique<RingSender>(*ring, options_.channel_bytes);
  // Release: the ring is zero before it can be found; pairs with the acquire load in receiver_from.
  segment_.channel(peer, options_.rank).store(extent.value().offset, std::memory_order_release);
  return true;
}

std::optional<std::uint64_t> ShmTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                    std::span<const std::byte> body, const PostOptions& options) {
  if (peers_[peer].sender == nullptr) [[unlikely]] {
    // No reply would make the room: nothing is under way to the peer.
    if (!peers_[peer].is_refused && !open_sender(peer)) throw NoRoom(no_channel);
    if (peers_[peer].is_refused) return peers_[peer].refused_tickets++;
  }
  const std::optional<std::uint64_t> ticket = peers_[peer].sender->try_push(head, body, options.reply_capacity);
  if (!ticket) return std::nullopt;
  ring(peer);
  return ticket;
}

void ShmTransport::ring(Rank peer) {
  const bool made_call =
      segment_.rank(peer).doorbell.ring(options_.rank, [this, peer] { wake_sender_.wake(wake_name(peer)); });
  // Relaxed: a statistic.
  if (made_call) counters_.doorbells.fetch_add(1, std::memory_order_relaxed);
}

std::size_t ShmTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  RingSender* sender = peers_[peer].sender.get();
  if (sender == nullptr) return answer_refused(peer, handler);
  const std::size_t reaped =
      sender->reap([&](std::uint64_t ticket, std::uint32_t status, std::span<const std::byte> reply) {
        handler.on_reply(peer, ticket, static_cast<Code>(status), reply);
      });
  // Acquire pairs with the release store in receiver_from. Nothing of such a ring was ever served.
  if (reaped != 0 || segment_.channel(peer, options_.rank).load(std::memory_order_acquire) != refused_channel)
    return reaped;
  peers_[peer].is_refused = true;
  peers_[peer].answered_tickets = sender->reaped();
  peers_[peer].refused_tickets = sender->posted();
  peers_[peer].sender.reset();
  return answer_refused(peer, handler);
}

// What cannot be sent is answered here, so that nobody waits for it.
std::size_t ShmTransport::answer_refused(Rank peer, ReplyHandler& handler) {
  Peer& to = peers_[peer];
  std::size_t answered = 0;
  for (; to.answered_tickets != to.refused_tickets; ++answered)
    handler.on_reply(peer, to.answered_tickets++, Code::no_memory, {});
  return answered;
}

RingReceiver* ShmTransport::receiver_from(Rank peer) {
  Peer& from = peers_[peer];
  if (from.receiver == nullptr) {
    // Pairs with the release store in open_sender.
    const std::uint64_t offset = segment_.channel(options_.rank, peer).load(std::memory_order_acquire);
    if (offset == 0 || offset == refused_channel) return nullptr;
    if (!segment_.reach({offset, RingShared::footprint(options_.channel_bytes)}).is_ok()) {
      // Release: see poll_replies. The ring's place stays lost, for its sender may be writing to it.
      segment_.channel(options_.rank, peer).store(refused_channel, std::memory_order_release);
      segment_.rank(peer).waiters.notify_all();
      return nullptr;
    }
    auto* ring = reinterpret_cast<RingShared*>(segment_.at(offset));
    from.receiver = std::make_unique<RingReceiver>(*ring, options_.channel_bytes);
  }
  return from.receiver.get();
}

std::size_t ShmTransport::serve_sender(Rank sender, RequestHandler& handler, std::size_t budget, bool& unfinished) {
  RingReceiver* receiver = receiver_from(sender);
  if (receiver == nullptr) return 0;
  const std::size_t served = receiver->serve(
      [&](std::span<const std::byte> message, std::span<std::byte> reply_room) -> RecordAnswer {
        const Served answer = handler.on_request(sender, message, reply_room, {sender, 0});
        if (answer.kind == Served::Kind::again) return {.kind = RecordAnswer::Kind::again};
        // A reply that would come later has no room of its own here; no message of this node asks for one.
        const Code code = answer.kind == Served::Kind::later ? Code::unsupported : answer.code;
        return {RecordAnswer::Kind::done, static_cast<std::uint32_t>(code), answer.reply_bytes};
      },
      budget);
  unfinished = receiver->pending();
  if (served != 0) segment_.rank(sender).waiters.notify_all();
  return served;
}

std::size_t ShmTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  segment_.rank(options_.rank).doorbell.collect([this](std::uint32_t sender) {
    if (sender < peers_.size() && !peers_[sender].in_ready) {
      peers_[sender].in_ready = true;
      ready_.push_back(sender);
    }
  });
  serving_.swap(ready_);
  std::size_t served = 0;
  auto next = serving_.begin();
  for (; next != serving_.end() && served < budget; ++next) {
    bool unfinished = false;
    served += serve_sender(*next, handler, budget - served, unfinished);
    peers_[*next].in_ready = unfinished;
    if (unfinished) ready_.push_back(*next);
  }
  // Those whose turn has not come are the next time before those that have had theirs.
  ready_.insert(ready_.begin(), next, serving_.end());
  serving_.clear();
  counters_.served.fetch_add(served, std::memory_order_relaxed);
  return served;
}

void ShmTransport::complete(ReplyToken, Code, std::span<const std::byte>) {}

Transfer ShmTransport::read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t) {
  if (!peers_[peer].attach_allowed) return Transfer::refused;
  return transfer_of(attach_to(peer).copy_from(pid_of(peer), remote_address, into.data(), into.size()).error);
}

Transfer ShmTransport::write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from, std::uint64_t) {
  if (!peers_[peer].attach_allowed) return Transfer::refused;
  return transfer_of(attach_to(peer).copy_to(pid_of(peer), remote_address, from.data(), from.size()).error);
}

Transfer ShmTransport::read_pieces(Rank peer, std::span<const TransferPiece> pieces) {
  if (!peers_[peer].attach_allowed) return Transfer::refused;
  if (pieces.size() == 1) return read(peer, pieces[0].remote_address, {pieces[0].local, pieces[0].bytes}, 0);
  return in_batches(
      pieces, [&](std::span<const os::AttachPiece> batch) { return attach_to(peer).copy_from(pid_of(peer), batch); });
}

Transfer ShmTransport::write_pieces(Rank peer, std::span<const TransferPiece> pieces) {
  if (!peers_[peer].attach_allowed) return Transfer::refused;
  if (pieces.size() == 1) return write(peer, pieces[0].remote_address, {pieces[0].local, pieces[0].bytes}, 0);
  return in_batches(
      pieces, [&](std::span<const os::AttachPiece> batch) { return attach_to(peer).copy_to(pid_of(peer), batch); });
}

}  // namespace farsum
