// One rank's end of the simulated network: the transport contract over the world's event queue. Owned by its SimWorld.
// It has no threads: every call is made from within an event, or from the test between events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/sim/sim_events.hpp"
#include "transport/transport.hpp"

namespace farsum {

class SimWorld;

class SimTransport final : public Transport, public SimEventSink {
 public:
  SimTransport(SimWorld& world, Rank rank);
  ~SimTransport() override;

  Rank rank() const { return rank_; }
  // Told of transfers that this rank asked for; null: nobody asks.
  void set_transfer_handler(TransferHandler* handler) { transfer_handler_ = handler; }
  // Whether a letter waits, or a request to be served, one that was answered `again` included.
  bool has_requests() const { return !waiting_.empty() || !letters_here_.empty(); }
  // Peers whose replies wait to be polled, each once, in the order they came.
  const std::vector<Rank>& peers_with_replies() const { return replied_; }

  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override;
  void deliver_letters_to(LetterHandler& handler) override { letter_handler_ = &handler; }
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override { return put_off_ != 0; }
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;

  void on_event(const SimEvent& event) override;

  // The rank has died: whoever waits for it is told; what it had under way arrives or is lost, as the seed says.
  void on_own_death();

 private:
  struct Request;
  struct Channel;
  struct Copy;

  Channel& channel_to(Rank peer);
  Channel* find_channel_to(Rank peer) const;
  void send_request(Channel& channel, std::uint64_t ticket);
  void send_reply(Channel& channel, Request& request, std::uint64_t ticket, Code code, std::size_t reply_bytes,
                  SimTime after_ns);
  void fail_outstanding(Channel& channel);
  Served serve_next(Channel& channel, RequestHandler& handler, SimTime after_ns);
  void request_comes(Rank from, std::uint64_t ticket);
  void reply_comes(Rank from, std::uint64_t ticket);
  void letter_comes(Rank from);
  void hand_over_letters();

  Transfer start_copy(const Copy& copy);
  Transfer copy_own_memory(const Copy& copy);
  void copy_part(std::uint64_t slot, std::size_t begin, std::size_t end);
  void end_copy(std::uint64_t slot);

  SimWorld& world_;
  Rank rank_;
  TransferHandler* transfer_handler_ = nullptr;
  LetterHandler* letter_handler_ = nullptr;

  // Channels this rank sends on, in the order of their first use, and where each peer's is.
  std::vector<std::unique_ptr<Channel>> out_;
  std::vector<std::uint32_t> out_index_;
  std::vector<Rank> replied_;  // those whose channel has replies ready
  // Channels this rank receives on: all of them, and those with a request to serve. The senders own them.
  std::vector<Channel*> in_;
  std::vector<Channel*> waiting_;
  std::deque<Channel*> letters_here_;  // a channel for each letter that has come
  std::size_t put_off_ = 0;            // of those, whose first request was answered `again`

  std::deque<Copy> copies_;
  std::vector<std::uint64_t> free_copies_;
};

}  // namespace farsum
