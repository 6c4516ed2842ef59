// One transport out of two: ranks of this node are reached through its shared memory, which counts places of the node,
// all others through a network, which may come later and counts ranks of the job. Everybody above counts ranks of the
// job.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/node_ranks.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Any thread that may call the two transports may call this one. Without a network remote ranks are out of reach:
// nothing finds room to them.
class RouteTransport final : public Transport {
 public:
  // Both outlive it. `node` speaks places of `here`.
  RouteTransport(Transport& node, const NodeRanks& here);

  // Called once, at any time but during deliver_letters_to, also while other threads call; the network outlives this.
  void add_network(Transport& network);

  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler) override;
  void abandon(Rank peer) override;
  void hand_over() override;
  // Ranks of this node get no letters.
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override;
  void deliver_letters_to(LetterHandler& handler) override;
  // The two are served first in turn, so that neither starves the other.
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override;
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;
  Transfer read_pieces(Rank peer, std::span<const TransferPiece> pieces) override;
  Transfer write_pieces(Rank peer, std::span<const TransferPiece> pieces) override;

 private:
  class OfPlaces;
  // A transport, and what the peer is called there; null where there is none.
  struct Way {
    Transport* transport;
    Rank peer;
  };

  Way way_to(Rank peer) const;
  // Acquire pairs with the release in add_network: the network is whole.
  Transport* network() const { return network_.load(std::memory_order_acquire); }
  std::size_t poll_node(RequestHandler& handler, std::size_t budget);

  Transport& node_;
  const NodeRanks& here_;
  bool places_are_ranks_;
  bool network_first_ = false;  // the agent's
  LetterHandler* letters_ = nullptr;
  std::atomic<Transport*> network_{nullptr};
};

}  // namespace farsum
