#include "transport/route/route_transport.hpp"

#include <algorithm>

namespace farsum {
namespace {

bool counts_as_the_job(const NodeRanks& here) {
  for (std::uint32_t place = 0; place < here.count(); ++place) {
    if (here.rank_at(place) != place) return false;
  }
  return true;
}

}  // namespace

// What comes from the node says places; those above are told ranks.
class RouteTransport::OfPlaces final : public RequestHandler, public ReplyHandler {
 public:
  OfPlaces(const NodeRanks& here, RequestHandler* requests, ReplyHandler* replies)
      : here_(here), requests_(requests), replies_(replies) {}

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    token.peer = here_.rank_at(token.peer);
    return requests_->on_request(here_.rank_at(from), message, reply_room, token);
  }
  void on_reply(Rank from, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    replies_->on_reply(here_.rank_at(from), ticket, code, reply);
  }

 private:
  const NodeRanks& here_;
  RequestHandler* requests_;
  ReplyHandler* replies_;
};

RouteTransport::RouteTransport(Transport& node, const NodeRanks& here)
    : node_(node), here_(here), places_are_ranks_(counts_as_the_job(here)) {}

void RouteTransport::add_network(Transport& network) {
  if (letters_ != nullptr) network.deliver_letters_to(*letters_);
  network_.store(&network, std::memory_order_release);
}

RouteTransport::Way RouteTransport::way_to(Rank peer) const {
  if (here_.is_here(peer)) return {&node_, here_.place_of(peer)};
  return {network(), peer};
}

Capabilities RouteTransport::capabilities(Rank peer) const {
  const Way way = way_to(peer);
  Capabilities found = way.transport != nullptr ? way.transport->capabilities(way.peer) : Capabilities();
  if (way.transport == &node_) found.max_letter_bytes = 0;
  return found;
}

std::optional<std::uint64_t> RouteTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                      std::span<const std::byte> body, const PostOptions& options) {
  const Way way = way_to(peer);
  if (way.transport == nullptr) return std::nullopt;
  return way.transport->try_post(way.peer, head, body, options);
}

void RouteTransport::abandon(Rank peer) {
  if (const Way way = way_to(peer); way.transport != nullptr) way.transport->abandon(way.peer);
}

std::size_t RouteTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  const Way way = way_to(peer);
  if (way.transport == nullptr) return 0;
  if (way.transport != &node_ || places_are_ranks_) return way.transport->poll_replies(way.peer, handler);
  OfPlaces told(here_, nullptr, &handler);
  return node_.poll_replies(way.peer, told);
}

std::size_t RouteTransport::poll_replies_unattended(Rank peer, ReplyHandler& handler) {
  if (here_.is_here(peer)) return poll_replies(peer, handler);
  Transport* const network = this->network();
  return network != nullptr ? network->poll_replies_unattended(peer, handler) : 0;
}

void RouteTransport::hand_over() {
  node_.hand_over();
  if (Transport* const network = this->network()) network->hand_over();
}

bool RouteTransport::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  const Way way = way_to(to);
  require_of_letter(way.transport != nullptr && way.transport != &node_,
                    "goes to a rank of this node, or by no network");
  return way.transport->try_letter(way.peer, header, body);
}

void RouteTransport::deliver_letters_to(LetterHandler& handler) {
  letters_ = &handler;
  if (Transport* const network = this->network()) network->deliver_letters_to(handler);
}

std::size_t RouteTransport::poll_node(RequestHandler& handler, std::size_t budget) {
  if (places_are_ranks_) return node_.poll_requests(handler, budget);
  OfPlaces told(here_, &handler, nullptr);
  return node_.poll_requests(told, budget);
}

std::size_t RouteTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  Transport* const network = this->network();
  if (network == nullptr) return poll_node(handler, budget);
  const auto poll = [&](bool of_network, std::size_t most) {
    return of_network ? network->poll_requests(handler, most) : poll_node(handler, most);
  };
  // Neither waits for the other to run out of requests: half the turn is kept for the second, and what that leaves is
  // the first one's again.
  network_first_ = !network_first_;
  const std::size_t share = budget - budget / 2;
  const std::size_t first = poll(network_first_, share);
  std::size_t finished = first + poll(!network_first_, budget - std::min(first, budget));
  if (first >= share && finished < budget) finished += poll(network_first_, budget - finished);
  return finished;
}

bool RouteTransport::has_unfinished_request() const {
  const Transport* const network = this->network();
  return node_.has_unfinished_request() || (network != nullptr && network->has_unfinished_request());
}

void RouteTransport::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  const Way way = way_to(token.peer);
  if (way.transport != nullptr) way.transport->complete({way.peer, token.ticket}, code, reply);
}

Transfer RouteTransport::read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into,
                              std::uint64_t cookie) {
  const Way way = way_to(peer);
  if (way.transport == nullptr) return Transfer::refused;
  return way.transport->read(way.peer, remote_address, into, cookie);
}

Transfer RouteTransport::write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                               std::uint64_t cookie) {
  const Way way = way_to(peer);
  if (way.transport == nullptr) return Transfer::refused;
  return way.transport->write(way.peer, remote_address, from, cookie);
}

Transfer RouteTransport::read_pieces(Rank peer, std::span<const TransferPiece> pieces) {
  const Way way = way_to(peer);
  return way.transport != nullptr ? way.transport->read_pieces(way.peer, pieces) : Transfer::refused;
}

Transfer RouteTransport::write_pieces(Rank peer, std::span<const TransferPiece> pieces) {
  const Way way = way_to(peer);
  return way.transport != nullptr ? way.transport->write_pieces(way.peer, pieces) : Transfer::refused;
}

}  // namespace farsum
