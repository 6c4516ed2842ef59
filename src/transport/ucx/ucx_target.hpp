// The half of a rank's transport that serves: requests and letters in, replies out. One thread at a time drives it,
// whoever serves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/credit_pool.hpp"
#include "transport/link/full_frames.hpp"
#include "transport/link/receiver.hpp"
#include "transport/transport.hpp"
#include "transport/ucx/frame_gate.hpp"
#include "transport/ucx/ucx_connections.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {

class UcxTarget final : private UcxConnections::Owner, private LetterHandler {
 public:
  // `receive_bytes` is what all who ask may have here at once. Context and gate must outlive this.
  static Result<std::unique_ptr<UcxTarget>> create(UcxContext& context, FrameGate& gate, std::uint64_t receive_bytes);
  ~UcxTarget() override;

  // As Network and Transport have them.
  std::span<const std::byte> address() const { return connections_->worker().address(); }
  Status let_in_only(const std::vector<std::uint32_t>& hosts) { return connections_->worker().let_in_only(hosts); }
  void deliver_letters_to(LetterHandler& handler) {
    // Publishes the handler; pairs with the acquire in on_letter().
    letters_.store(&handler, std::memory_order_release);
  }
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget);
  bool has_unfinished_request() const;
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply);
  int descriptor() const { return connections_->worker().event_descriptor(); }
  Result<bool> arm() { return connections_->worker().arm(); }

  // Whether all who have asked have said goodbye, but for those that are lost.
  bool has_heard_goodbye(FunctionRef<bool(Rank)> is_lost) const;

  const UcxConnections::Counters& traffic() const { return connections_->counters(); }
  // Relaxed: a count, of which nobody concludes anything.
  std::uint64_t peer_bytes() const { return peer_bytes_.load(std::memory_order_relaxed); }
  // Kept for a rank that has asked, its address and buffers for messages apart.
  static std::uint64_t bytes_of_peer();

 private:
  class Turn;

  UcxTarget(FrameGate& gate, std::uint64_t receive_bytes);
  link::LinkReceiver* receiver(Rank peer);
  link::LinkReceiver& receiver_made(Rank peer);
  void touch(Rank peer);
  void end_turn();

  void on_frame(std::span<const std::byte> bytes) override;
  void on_sent(Rank peer, link::FrameId id, bool ok) override;
  void on_broken(Rank peer, std::uint32_t epoch) override;
  void on_disconnected(Rank peer, std::uint32_t epoch) override;
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override;

  FrameGate& gate_;
  std::atomic<std::uint64_t> peer_bytes_{0};
  std::atomic<LetterHandler*> letters_{nullptr};  // any thread may set it

  // Of the thread that drives.
  link::FullFrames full_frames_;
  link::CreditPool pool_;
  std::map<Rank, link::LinkReceiver> receivers_;
  std::vector<Rank> touched_;                    // with something to tell at the turn's end
  std::vector<Rank> parking_;                    // with requests that are to be served again
  Turn* turn_ = nullptr;                         // while poll_requests runs
  std::unique_ptr<UcxConnections> connections_;  // last: UCX may still call while it goes
};

}  // namespace farsum
