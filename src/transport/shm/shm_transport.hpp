// Messages between ranks of one node, through rings in the node segment, and copies between their memories through the
// kernel. One ring per sender and receiver, made when first used; a request's reply lies in its own record, so
// acknowledgements need no message.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockfree/ring.hpp"
#include "os/attach.hpp"
#include "os/wake_socket.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/transport.hpp"

namespace farsum {

// One rank's end. Ranks here are local ranks of the node.
class ShmTransport : public Transport {
 public:
  struct Options {
    Rank rank = 0;
    std::uint64_t channel_bytes = 131072;
    bool allow_attach = true;  // false: behave as if the kernel refused copies between processes
  };
  struct Counters {
    std::atomic<std::uint64_t> doorbells{0};  // system calls made to wake an agent
    std::atomic<std::uint64_t> served{0};
  };

  ShmTransport(NodeSegment& segment, Options options);

  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override { return !ready_.empty(); }
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;
  Transfer read_pieces(Rank peer, std::span<const TransferPiece> pieces) override;
  Transfer write_pieces(Rank peer, std::span<const TransferPiece> pieces) override;

  // Wakes that rank's agent, whatever it sleeps on; its next turn looks at everything. Any thread may call.
  void ring(Rank peer);
  // The name under which that rank is woken where it sleeps on descriptors.
  os::WakeName wake_name(Rank peer) const { return {segment_.wake_tag(), peer}; }
  // Finds out, once all ranks have joined, whose memory the kernel lets us copy.
  void probe_peers();
  // Empty where copies to and from `peer` work; else the reason.
  const std::string& attach_refusal(Rank peer) const { return peers_[peer].attach_refusal; }
  // That of the first to whom they do not; empty where they all do.
  const std::string& first_attach_refusal() const;
  const Counters& counters() const { return counters_; }

 private:
  struct Peer {
    std::unique_ptr<RingSender> sender;      // to the peer; under OriginEngine's lock of it, as what follows
    bool is_refused = false;                 // there is no sender, for one of the two cannot map the ring
    std::uint64_t refused_tickets = 0;       // the next one to be given out then
    std::uint64_t answered_tickets = 0;      // the next of them to be answered
    std::unique_ptr<RingReceiver> receiver;  // from the peer; the agent's
    bool in_ready = false;                   // the agent's
    bool attach_allowed = false;
    std::string attach_refusal;
  };

  bool open_sender(Rank peer);
  std::size_t answer_refused(Rank peer, ReplyHandler& handler);
  RingReceiver* receiver_from(Rank peer);
  std::size_t serve_sender(Rank sender, RequestHandler& handler, std::size_t budget, bool& unfinished);
  pid_t pid_of(Rank peer) const;
  const os::Attach& attach_to(Rank peer) const { return peer == options_.rank ? own_ : attach_; }

  NodeSegment& segment_;
  Options options_;
  os::Attach attach_;  // to other ranks
  os::Attach own_;
  os::WakeSender wake_sender_;
  std::vector<Peer> peers_;
  std::vector<Rank> ready_;  // senders with requests, or with one to be served again
  std::vector<Rank> serving_;
  Counters counters_;
};

}  // namespace farsum
