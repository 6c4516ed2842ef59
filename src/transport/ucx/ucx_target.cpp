#include "transport/ucx/ucx_target.hpp"

#include <algorithm>
#include <utility>

#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr unsigned to_origin = 2;  // channel of UcxWorker

}  // namespace

// Puts off what is above the budget of a turn. The frame that uses it up is served whole: putting off its rest would
// cost a copy of each request and an acknowledgement more.
class UcxTarget::Turn final : public RequestHandler {
 public:
  Turn(RequestHandler& handler, std::size_t budget) : handler_(handler), left_(budget) {}

  void begin_frame(std::size_t bytes) {
    is_used_up_ = left_ == 0;
    ++frames_;
    frame_bytes_ = bytes;
  }
  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    if (is_used_up_) return {.kind = Served::Kind::again, .is_untouched = true};
    const Served served = handler_.on_request(from, message, reply_room, token);
    if (served.kind != Served::Kind::again) {
      if (left_ != 0) --left_;
      ++finished_;
    }
    return served;
  }

  std::size_t left() const { return left_; }
  std::size_t finished() const { return finished_; }
  bool has_one_short_frame() const { return frames_ == 1 && frame_bytes_ <= short_frame_bytes; }

 private:
  RequestHandler& handler_;
  std::size_t left_;
  std::size_t frames_ = 0, frame_bytes_ = 0;  // so many, and the last of them
  bool is_used_up_ = false;
  std::size_t finished_ = 0;
};

UcxTarget::UcxTarget(FrameGate& gate, std::uint64_t receive_bytes) : gate_(gate), pool_(receive_bytes, gate.ranks()) {}
UcxTarget::~UcxTarget() = default;

Result<std::unique_ptr<UcxTarget>> UcxTarget::create(UcxContext& context, FrameGate& gate,
                                                     std::uint64_t receive_bytes) {
  std::unique_ptr<UcxTarget> made(new UcxTarget(gate, receive_bytes));
  auto connections = UcxConnections::create(context, *made, to_origin);
  if (!connections.is_ok()) return connections.take_status();
  made->connections_ = std::move(connections.value());
  return made;
}

std::uint64_t UcxTarget::bytes_of_peer() {
  return sizeof(decltype(receivers_)::value_type) + UcxConnections::bytes_of_peer();
}

std::size_t UcxTarget::poll_requests(RequestHandler& handler, std::size_t budget) {
  Turn turn(handler, budget);
  turn_ = &turn;
  for (const Rank peer : parking_) {
    touch(peer);
    receiver(peer)->serve_parked(turn, turn.left());
  }
  parking_.clear();  // at the turn's end those that still have some are noted anew
  for (int i = 0; i < most_rounds && turn.left() != 0 && connections_->progress() != 0; ++i) {
    if (turn.has_one_short_frame()) end_turn();
  }
  end_turn();
  turn_ = nullptr;
  return turn.finished();
}

bool UcxTarget::has_unfinished_request() const {
  return std::any_of(parking_.begin(), parking_.end(), [this](Rank peer) { return receivers_.at(peer).has_again(); });
}

void UcxTarget::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  link::LinkReceiver* link = receiver(token.peer);
  if (link == nullptr) return;
  link->complete(token.ticket, code, reply);
  touch(token.peer);
  if (turn_ == nullptr) end_turn();
}

bool UcxTarget::has_heard_goodbye(FunctionRef<bool(Rank)> is_lost) const {
  return std::all_of(receivers_.begin(), receivers_.end(), [&](const auto& entry) {
    return is_lost(entry.first) || (!entry.second.is_in_use() && entry.second.is_quiet());
  });
}

link::LinkReceiver* UcxTarget::receiver(Rank peer) {
  const auto found = receivers_.find(peer);
  return found == receivers_.end() ? nullptr : &found->second;
}

link::LinkReceiver& UcxTarget::receiver_made(Rank peer) {
  if (link::LinkReceiver* link = receiver(peer)) return *link;
  link::ReceiverOptions options;
  static_cast<link::LinkOptions&>(options) = gate_.link_options(peer);
  options.full_frames = &full_frames_;
  options.letters = this;
  link::LinkReceiver& made = receivers_.try_emplace(peer, options, connections_->wire(peer), pool_).first->second;
  // Relaxed: see peer_bytes().
  peer_bytes_.fetch_add(bytes_of_peer(), std::memory_order_relaxed);
  return made;
}

void UcxTarget::touch(Rank peer) {
  if (std::find(touched_.begin(), touched_.end(), peer) == touched_.end()) touched_.push_back(peer);
}

void UcxTarget::end_turn() {
  for (const Rank peer : touched_) {
    link::LinkReceiver& link = *receiver(peer);
    link.end_turn();
    const bool is_noted = std::find(parking_.begin(), parking_.end(), peer) != parking_.end();
    if (link.has_again() && !is_noted) parking_.push_back(peer);
  }
  touched_.clear();
  pool_.hand_out();
  connections_->dispatch();
}

// ---- what the connections and the links tell

void UcxTarget::on_frame(std::span<const std::byte> bytes) {
  link::Frame frame;
  if (turn_ == nullptr || !gate_.let_through(bytes, frame)) return;
  if (frame.header.kind == link::FrameKind::hello) connections_->worker().mark_accepted_sockets();
  const Rank peer = frame.header.from;
  turn_->begin_frame(bytes.size());
  link::LinkReceiver& link = receiver_made(peer);
  gate_.pass_on(link, frame, *turn_);
  touch(peer);
  if (link.has_much_to_grant()) link.end_turn();
}

void UcxTarget::on_sent(Rank peer, link::FrameId id, bool ok) { receiver(peer)->on_sent(id, ok); }

void UcxTarget::on_broken(Rank peer, std::uint32_t epoch) { receiver(peer)->on_broken(epoch); }

void UcxTarget::on_disconnected(Rank peer, std::uint32_t epoch) { receiver(peer)->on_disconnected(epoch); }

void UcxTarget::on_letter(Rank from, std::span<const std::byte> letter) noexcept {
  // Acquire pairs with the release in deliver_letters_to().
  LetterHandler* const files = letters_.load(std::memory_order_acquire);
  if (files != nullptr) return files->on_letter(from, letter);
  gate_.refuse();
}

}  // namespace farsum
