// The half of a rank's transport that asks: requests and letters out, replies in. Any thread calls, one at a time goes
// on. What of it needs the agent is told in `on_hand_over`; reply_care.hpp says when.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/reply_care.hpp"
#include "transport/network.hpp"
#include "transport/ucx/asking_links.hpp"
#include "transport/ucx/frame_gate.hpp"
#include "transport/ucx/ucx_connections.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {

class UcxOrigin final : private UcxConnections::Owner {
 public:
  struct Options {
    std::uint64_t timeout_ns = 30'000'000'000;  // of a peer's silence; 0: never
    std::function<std::uint64_t()> now_ns;
    // As NetworkOptions has them; may be empty.
    std::function<void(Rank, const std::string&)> on_lost;
    std::function<void()> on_hand_over;
  };

  // Context and gate must outlive this.
  static Result<std::unique_ptr<UcxOrigin>> create(UcxContext& context, FrameGate& gate, Options options);
  ~UcxOrigin() override;

  // As Network and Transport have them. A message, a reply or a letter fits a frame.
  Status let_in_only(const std::vector<std::uint32_t>& hosts);
  void introduce(Rank peer, std::span<const std::byte> address);
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options);
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body);
  std::size_t poll_replies(Rank peer, ReplyHandler& handler);
  std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler);
  void abandon(Rank peer);
  void hand_over();
  void expect_receipts();
  bool tick();
  std::uint64_t next_deadline_ns();
  bool is_unattended(Network::Threads threads);
  int descriptor() const { return connections_->worker().event_descriptor(); }
  Result<bool> arm();

  void open(Rank peer);
  link::LinkState state(Rank peer) const;
  bool is_lost(Rank peer) const;
  // Says goodbye to every peer; whether all are at their end. To be called again until they are.
  bool has_said_goodbye();

  const UcxConnections::Counters& traffic() const { return connections_->counters(); }
  // Relaxed: counts, of which nobody concludes anything.
  std::uint64_t peers() const { return peers_.load(std::memory_order_relaxed); }
  std::uint64_t peer_bytes() const { return peer_bytes_.load(std::memory_order_relaxed); }
  // Kept for a rank that was introduced, its address and buffers for messages apart.
  static std::uint64_t bytes_of_peer() { return AskingLinks::bytes_of_link() + UcxConnections::bytes_of_peer(); }

 private:
  class Driving;

  UcxOrigin(FrameGate& gate, Options options);
  void note(AskingLink& asking) noexcept;
  void note_undelivered(AskingLink& asking);
  void drop_undelivered(AskingLink& asking);
  void send_held(AskingLink& asking);
  std::size_t take_replies(AskingLink& asking, ReplyHandler& handler);
  bool take_in();
  void act(link::ReplyCare::Action action);
  std::string why(const AskingLink& asking) const;
  void look_at_time(AskingLink& asking, std::uint64_t now_ns);
  void look_after_letters(const AskingLink& asking);
  void hand_over_held();

  void on_frame(std::span<const std::byte> bytes) override;
  void on_sent(Rank peer, link::FrameId id, bool ok) override;
  void on_broken(Rank peer, std::uint32_t epoch) override;
  void on_disconnected(Rank peer, std::uint32_t epoch) override;

  FrameGate& gate_;
  const Options options_;
  std::atomic<std::uint64_t> peers_{0};
  std::atomic<std::uint64_t> peer_bytes_{0};

  mutable std::mutex drive_;  // guards all below; only on_lost takes others under it
  AskingLinks links_;
  link::ReplyCare care_;
  bool to_hand_over_ = false;                         // on_hand_over is to be called
  std::uint64_t agent_comes_at_ns_ = Network::never;  // as next_deadline_ns() told last, or earlier
  std::unique_ptr<UcxConnections> connections_;       // last: UCX may still call while it goes
};

}  // namespace farsum
