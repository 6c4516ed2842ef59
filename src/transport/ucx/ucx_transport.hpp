// Messages between hosts: links over UCX. One worker asks (UcxOrigin: any thread, one at a time), another serves
// (UcxTarget: whoever serves, one thread at a time), so that a reply that a thread spins for wakes no agent. This joins
// the two.
//
// What travels is at most one fragment of UCX's; whatever is lost with a connection goes again over the next, and each
// request is served once. A peer that is silent for too long is given up: its requests are answered peer_failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/sender.hpp"
#include "transport/network.hpp"
#include "transport/ucx/frame_gate.hpp"
#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"
#include "transport/ucx/ucx_origin.hpp"
#include "transport/ucx/ucx_target.hpp"

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
    // As NetworkOptions has them; may be empty.
    std::function<void(Rank, const std::string&)> on_lost;
    std::function<void()> on_hand_over;
  };

  static Result<std::unique_ptr<UcxTransport>> create(Options options);
  ~UcxTransport() override;

  std::span<const std::byte> address() const override;
  Status let_in_only(const std::vector<std::uint32_t>& hosts) override;
  // Nothing is sent before the first request to it, or open(). This rank itself is passed over, and so is a peer that
  // is known.
  void introduce(Rank peer, std::span<const std::byte> address) override;
  // Connects to a peer that was introduced, so that its first request finds room.
  void open(Rank peer);
  link::LinkState state(Rank peer) const;

  // A peer that was not introduced has no room ever, and gets no letters.
  Capabilities capabilities(Rank peer) const override;
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  // The handler may not call this transport. Looks after the time of this peer's link, too.
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler) override;
  void abandon(Rank peer) override;
  void hand_over() override;
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override;
  void deliver_letters_to(LetterHandler& handler) override;
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override;
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;

  void expect_receipts() override;
  bool tick() override;
  std::uint64_t next_deadline_ns() override;
  bool is_unattended(Threads threads) override;

  int request_descriptor() const override;
  Result<bool> arm_requests() override;
  int reply_descriptor() const override;
  Result<bool> arm_replies() override;

  void close(RequestHandler& handler) override;
  NetworkCounters counters() const override;
  // Kept for a rank that was introduced, and for one that has asked, their addresses and buffers for messages apart.
  static std::uint64_t bytes_of_known_peer();
  static std::uint64_t bytes_of_asking_peer();
  // Frames that were not of this job. Any thread may call.
  std::uint64_t strangers() const { return gate_->strangers(); }

 private:
  explicit UcxTransport(Options options);
  Status open_halves();
  bool has_said_and_heard_goodbye();
  void rest();

  const Options options_;
  std::unique_ptr<UcxLibrary> library_;
  std::unique_ptr<UcxContext> context_;
  Capabilities capabilities_;
  std::unique_ptr<FrameGate> gate_;
  std::unique_ptr<UcxOrigin> origin_;
  std::unique_ptr<UcxTarget> target_;
};

}  // namespace farsum
