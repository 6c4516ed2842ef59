// Messages between hosts: links over UCX. One worker asks (the origin half: any thread, one at a time), another serves
// (the target half: the agent's thread alone), so that a reply that a thread spins for wakes no agent.
//
// What travels is at most one fragment of UCX's; whatever is lost with a connection goes again over the next, and each
// request is served once. A peer that is silent for too long is given up: its requests are answered peer_failed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/credit_pool.hpp"
#include "transport/link/receiver.hpp"
#include "transport/link/sender.hpp"
#include "transport/network.hpp"
#include "transport/ucx/ucx_connections.hpp"
#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"

namespace farsum {

class UcxTransport final : public Network {
 public:
  struct Options {
    Rank rank = 0;
    std::uint32_t ranks = 1;  // of the job
    link::Secret secret{};
    UcxOptions ucx;
    std::string library;  // FARSUM_UCX_LIBRARY
    std::uint64_t receive_bytes = std::uint64_t{64} << 20;
    std::uint64_t timeout_ns = 30'000'000'000;  // of a peer's silence; 0: never
    std::function<std::uint64_t()> now_ns;      // empty: the monotonic clock
  };

  static Result<std::unique_ptr<UcxTransport>> create(Options options);
  ~UcxTransport() override;

  // Where the other ranks reach this one.
  std::span<const std::byte> address() const override;
  // Lets only these hosts (IPv4, as the network has them) connect to this rank: those of the job. Before introduce().
  Status let_in_only(const std::vector<std::uint32_t>& hosts) override;
  // Says where a peer is reached. Nothing is sent before the first request to it, or open().
  void introduce(Rank peer, std::span<const std::byte> address) override;
  // Connects to a peer that was introduced, so that its first request finds room.
  void open(Rank peer);
  link::LinkState state(Rank peer) const;
  // A peer is known to be dead: what it was asked for is answered peer_failed, now and ever. Any thread may call.
  void give_up(Rank peer) override;
  // The same for what it has asked for, which is dropped; it is refused for ever. The agent's thread calls.
  void forget(Rank peer);

  // A peer that was not introduced has no room ever.
  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        std::size_t reply_capacity) override;
  // The handler may not call this transport.
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override;
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;

  // Looks after time: pings, reconnects, gives up. poll_replies does so for its peer. Any thread may call.
  void tick() override;
  // When tick() has something to do next; LinkSender::never where nothing is due.
  std::uint64_t next_deadline_ns() const override;

  // For the agent's sleep: readable when poll_requests has something to do, once arm_requests() has answered true.
  int request_descriptor() const override;
  Result<bool> arm_requests() override;
  // The same for replies, for whoever looks after this half while its threads sleep: then tick() has something to do.
  int reply_descriptor() const override;
  Result<bool> arm_replies() override;

  // Frames that were not of this job, and frames of it that made no sense. Any thread may call.
  std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }

 private:
  // Each half hears its worker.
  struct OriginHalf final : UcxConnections::Owner {
    explicit OriginHalf(UcxTransport& transport) : owner(transport) {}
    void on_frame(std::span<const std::byte> bytes) override;
    void on_sent(Rank peer, link::FrameId id, bool ok) override;
    void on_broken(Rank peer, std::uint32_t epoch) override;
    void on_disconnected(Rank peer, std::uint32_t epoch) override;

    UcxTransport& owner;
    std::map<Rank, link::LinkSender> senders;
    std::unique_ptr<UcxConnections> connections;
  };
  struct TargetHalf final : UcxConnections::Owner {
    explicit TargetHalf(UcxTransport& transport) : owner(transport) {}
    void on_frame(std::span<const std::byte> bytes) override;
    void on_sent(Rank peer, link::FrameId id, bool ok) override;
    void on_broken(Rank peer, std::uint32_t epoch) override;
    void on_disconnected(Rank peer, std::uint32_t epoch) override;
    link::LinkReceiver* receiver(Rank peer);
    link::LinkReceiver& receiver_made(Rank peer);
    void touch(Rank peer);
    void end_turn();

    UcxTransport& owner;
    std::unique_ptr<link::CreditPool> pool;
    std::map<Rank, link::LinkReceiver> receivers;
    std::vector<Rank> touched;          // with something to tell at the turn's end
    RequestHandler* handler = nullptr;  // while poll_requests runs
    std::unique_ptr<UcxConnections> connections;
  };

  explicit UcxTransport(Options options);
  Status open_workers();
  link::LinkSender* sender(Rank peer) const;
  bool let_through(std::span<const std::byte> bytes, link::Frame& frame);
  link::LinkOptions link_options(Rank peer) const;

  Options options_;
  std::unique_ptr<UcxLibrary> library_;
  std::unique_ptr<UcxContext> context_;
  std::size_t frame_bytes_ = 0;

  mutable std::mutex drive_;  // guards the origin half; taken last
  mutable OriginHalf origin_{*this};
  TargetHalf target_{*this};
  std::atomic<std::uint64_t> strangers_{0};
};

}  // namespace farsum
