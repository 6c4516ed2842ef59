#include "transport/ucx/ucx_transport.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace farsum {
namespace {

constexpr unsigned to_target = 1, to_origin = 2;  // channels of UcxWorker
// Rounds of UCX in one turn. A connection to a host that does not answer can have something to do for ever, and time
// must pass for the links meanwhile.
constexpr int most_rounds = 64;

void drive(UcxConnections& connections) {
  for (int i = 0; i < most_rounds && connections.progress() != 0; ++i) {
  }
}

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Puts off what is above the budget of a turn. A frame may bring more requests than that.
class Budgeted final : public RequestHandler {
 public:
  Budgeted(RequestHandler& handler, std::size_t budget) : handler_(handler), left_(budget) {}

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    if (left_ == 0) return {.kind = Served::Kind::again};
    const Served served = handler_.on_request(from, message, reply_room, token);
    if (served.kind != Served::Kind::again) {
      --left_;
      ++finished_;
    }
    return served;
  }

  std::size_t left() const { return left_; }
  std::size_t finished() const { return finished_; }

 private:
  RequestHandler& handler_;
  std::size_t left_;
  std::size_t finished_ = 0;
};

}  // namespace

// ---- set-up

UcxTransport::UcxTransport(Options options) : options_(std::move(options)) {
  if (!options_.now_ns) options_.now_ns = monotonic_ns;
}

UcxTransport::~UcxTransport() = default;

Result<std::unique_ptr<UcxTransport>> UcxTransport::create(Options options) {
  std::unique_ptr<UcxTransport> transport(new UcxTransport(std::move(options)));
  if (Status status = transport->open_workers(); !status.is_ok()) return status;
  return transport;
}

Status UcxTransport::open_workers() {
  auto library = UcxLibrary::load(options_.library);
  if (!library.is_ok()) return library.take_status();
  library_ = std::move(library.value());
  auto context = UcxContext::create(*library_, options_.ucx);
  if (!context.is_ok()) return context.take_status();
  context_ = std::move(context.value());
  frame_bytes_ = context_->piece_bytes();
  target_.pool = std::make_unique<link::CreditPool>(options_.receive_bytes, options_.ranks);
  auto target = UcxConnections::create(*context_, target_, to_origin);
  if (!target.is_ok()) return target.take_status();
  target_.connections = std::move(target.value());
  auto origin = UcxConnections::create(*context_, origin_, to_target);
  if (!origin.is_ok()) return origin.take_status();
  origin_.connections = std::move(origin.value());
  return {};
}

std::span<const std::byte> UcxTransport::address() const { return target_.connections->worker().address(); }

Status UcxTransport::let_in_only(const std::vector<std::uint32_t>& hosts) {
  const std::lock_guard lock(drive_);
  if (Status status = target_.connections->worker().let_in_only(hosts); !status.is_ok()) return status;
  return origin_.connections->worker().let_in_only(hosts);
}

link::LinkOptions UcxTransport::link_options(Rank peer) const {
  link::LinkOptions options;
  options.me = options_.rank;
  options.peer = peer;
  options.secret = options_.secret;
  options.max_frame_bytes = frame_bytes_;
  return options;
}

void UcxTransport::introduce(Rank peer, std::span<const std::byte> address) {
  const std::lock_guard lock(drive_);
  link::SenderOptions options;
  static_cast<link::LinkOptions&>(options) = link_options(peer);
  options.address = origin_.connections->worker().address();
  options.timeout_ns = options_.timeout_ns;
  if (options_.timeout_ns != 0) {
    options.ping_after_ns = options_.timeout_ns / 6;
    options.reconnect_after_ns = options_.timeout_ns / 3;
  }
  origin_.senders.try_emplace(peer, options, origin_.connections->wire(peer, address));
}

link::LinkSender* UcxTransport::sender(Rank peer) const {
  const auto found = origin_.senders.find(peer);
  return found == origin_.senders.end() ? nullptr : &found->second;
}

void UcxTransport::open(Rank peer) {
  const std::lock_guard lock(drive_);
  if (link::LinkSender* link = sender(peer)) link->open(options_.now_ns());
  origin_.connections->settle();
}

link::LinkState UcxTransport::state(Rank peer) const {
  const std::lock_guard lock(drive_);
  const link::LinkSender* link = sender(peer);
  return link != nullptr ? link->state() : link::LinkState::idle;
}

void UcxTransport::give_up(Rank peer) {
  const std::lock_guard lock(drive_);
  if (link::LinkSender* link = sender(peer)) link->give_up(Code::peer_failed);
  origin_.connections->settle();
}

void UcxTransport::forget(Rank peer) {
  target_.receiver_made(peer).forget_peer();
  target_.touch(peer);
  if (target_.handler == nullptr) target_.end_turn();
}

// ---- asking

Capabilities UcxTransport::capabilities(Rank peer) const {
  Capabilities capabilities;
  capabilities.late_replies = true;
  capabilities.separate_replies = true;
  capabilities.max_message_bytes = link::max_message_bytes(link_options(peer));
  capabilities.max_reply_bytes = link::max_reply_bytes(link_options(peer));
  return capabilities;
}

std::optional<std::uint64_t> UcxTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                    std::span<const std::byte> body, std::size_t reply_capacity) {
  const Capabilities most = capabilities(peer);
  if (head.size() + body.size() > most.max_message_bytes || reply_capacity > most.max_reply_bytes) return std::nullopt;
  const std::lock_guard lock(drive_);
  link::LinkSender* link = sender(peer);
  if (link == nullptr) return std::nullopt;
  link::Post post;
  post.head = head;
  post.body = body;
  post.reply_capacity = reply_capacity;
  const auto ticket = link->post(post, options_.now_ns());
  origin_.connections->settle();
  return ticket;
}

std::size_t UcxTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  const std::lock_guard lock(drive_);
  link::LinkSender* link = sender(peer);
  if (link == nullptr) return 0;
  drive(*origin_.connections);
  if (const std::uint64_t now = options_.now_ns(); now >= link->next_deadline_ns()) link->tick(now);
  std::size_t count = 0;
  link->take_replies([&](std::uint64_t ticket, Code code, std::span<const std::byte> data) {
    ++count;
    handler.on_reply(peer, ticket, code, data);
  });
  origin_.connections->settle();
  return count;
}

void UcxTransport::tick() {
  const std::lock_guard lock(drive_);
  const std::uint64_t now = options_.now_ns();
  drive(*origin_.connections);
  for (auto& [peer, link] : origin_.senders) {
    if (now >= link.next_deadline_ns()) link.tick(now);
  }
  origin_.connections->settle();
}

std::uint64_t UcxTransport::next_deadline_ns() const {
  const std::lock_guard lock(drive_);
  std::uint64_t next = link::LinkSender::never;
  for (const auto& [peer, link] : origin_.senders) next = std::min(next, link.next_deadline_ns());
  return next;
}

bool UcxTransport::let_through(std::span<const std::byte> bytes, link::Frame& frame) {
  const link::Fault fault = link::decode(bytes, options_.secret, options_.rank, frame);
  if (fault == link::Fault::none && frame.header.from < options_.ranks) return true;
  // Relaxed: a count, read by nobody who concludes anything from it.
  strangers_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void UcxTransport::OriginHalf::on_frame(std::span<const std::byte> bytes) {
  link::Frame frame;
  if (!owner.let_through(bytes, frame)) return;
  if (frame.header.kind == link::FrameKind::hello_ack) connections->worker().mark_accepted_sockets();
  if (link::LinkSender* link = owner.sender(frame.header.from)) link->on_frame(frame, owner.options_.now_ns());
}

void UcxTransport::OriginHalf::on_sent(Rank peer, link::FrameId id, bool ok) {
  owner.sender(peer)->on_sent(id, ok, owner.options_.now_ns());
}

void UcxTransport::OriginHalf::on_broken(Rank peer, std::uint32_t epoch) {
  owner.sender(peer)->on_broken(epoch, owner.options_.now_ns());
}

void UcxTransport::OriginHalf::on_disconnected(Rank peer, std::uint32_t epoch) {
  owner.sender(peer)->on_disconnected(epoch, owner.options_.now_ns());
}

// ---- serving

std::size_t UcxTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  Budgeted budgeted(handler, budget);
  target_.handler = &budgeted;
  for (auto& [peer, link] : target_.receivers) {
    if (!link.has_again()) continue;
    target_.touch(peer);
    link.serve_parked(budgeted, budgeted.left());
  }
  for (int i = 0; i < most_rounds && budgeted.left() != 0 && target_.connections->progress() != 0; ++i) {
  }
  target_.end_turn();
  target_.handler = nullptr;
  return budgeted.finished();
}

bool UcxTransport::has_unfinished_request() const {
  return std::any_of(target_.receivers.begin(), target_.receivers.end(),
                     [](const auto& entry) { return entry.second.has_again(); });
}

void UcxTransport::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  link::LinkReceiver* link = target_.receiver(token.peer);
  if (link == nullptr) return;
  link->complete(token.ticket, code, reply);
  target_.touch(token.peer);
  if (target_.handler == nullptr) target_.end_turn();
}

Transfer UcxTransport::read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) { return Transfer::refused; }

Transfer UcxTransport::write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) {
  return Transfer::refused;
}

int UcxTransport::request_descriptor() const { return target_.connections->worker().event_descriptor(); }

Result<bool> UcxTransport::arm_requests() { return target_.connections->worker().arm(); }

int UcxTransport::reply_descriptor() const { return origin_.connections->worker().event_descriptor(); }

Result<bool> UcxTransport::arm_replies() {
  const std::lock_guard lock(drive_);
  return origin_.connections->worker().arm();
}

void UcxTransport::TargetHalf::on_frame(std::span<const std::byte> bytes) {
  link::Frame frame;
  if (handler == nullptr || !owner.let_through(bytes, frame)) return;
  if (frame.header.kind == link::FrameKind::hello) connections->worker().mark_accepted_sockets();
  const Rank peer = frame.header.from;
  receiver_made(peer).on_frame(frame, *handler);
  touch(peer);
}

void UcxTransport::TargetHalf::on_sent(Rank peer, link::FrameId id, bool ok) { receiver(peer)->on_sent(id, ok); }

void UcxTransport::TargetHalf::on_broken(Rank peer, std::uint32_t epoch) { receiver(peer)->on_broken(epoch); }

void UcxTransport::TargetHalf::on_disconnected(Rank peer, std::uint32_t epoch) {
  receiver(peer)->on_disconnected(epoch);
}

link::LinkReceiver* UcxTransport::TargetHalf::receiver(Rank peer) {
  const auto found = receivers.find(peer);
  return found == receivers.end() ? nullptr : &found->second;
}

link::LinkReceiver& UcxTransport::TargetHalf::receiver_made(Rank peer) {
  if (link::LinkReceiver* link = receiver(peer)) return *link;
  link::ReceiverOptions options;
  static_cast<link::LinkOptions&>(options) = owner.link_options(peer);
  return receivers.try_emplace(peer, options, connections->wire(peer), *pool).first->second;
}

void UcxTransport::TargetHalf::touch(Rank peer) {
  if (std::find(touched.begin(), touched.end(), peer) == touched.end()) touched.push_back(peer);
}

void UcxTransport::TargetHalf::end_turn() {
  for (const Rank peer : touched) receiver(peer)->end_turn();
  touched.clear();
  pool->hand_out();
  connections->settle();
}

}  // namespace farsum
