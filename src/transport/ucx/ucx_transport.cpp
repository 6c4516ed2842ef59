#include "transport/ucx/ucx_transport.hpp"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t most_closing_ns = 2'000'000'000;

UcxTransport::Options with_clock(UcxTransport::Options options) {
  if (!options.now_ns) options.now_ns = monotonic_ns;
  return options;
}

}  // namespace

// ---- set-up

UcxTransport::UcxTransport(Options options) : options_(with_clock(std::move(options))) {}

UcxTransport::~UcxTransport() = default;

Result<std::unique_ptr<UcxTransport>> UcxTransport::create(Options options) {
  std::unique_ptr<UcxTransport> transport(new UcxTransport(std::move(options)));
  if (Status status = transport->open_halves(); !status.is_ok()) return status;
  return transport;
}

Status UcxTransport::open_halves() {
  auto library = UcxLibrary::load(options_.library);
  if (!library.is_ok()) return library.take_status();
  library_ = std::move(library.value());
  auto context = UcxContext::create(*library_, options_.ucx);
  if (!context.is_ok()) return context.take_status();
  context_ = std::move(context.value());
  const std::size_t frame_bytes = context_->piece_bytes();
  gate_ = std::make_unique<FrameGate>(FrameGate::Terms{
      .rank = options_.rank, .ranks = options_.ranks, .secret = options_.secret, .frame_bytes = frame_bytes});
  capabilities_.late_replies = true;
  capabilities_.separate_replies = true;
  capabilities_.keeps = true;
  capabilities_.max_message_bytes = link::max_message_bytes(gate_->link_options(0));
  capabilities_.max_reply_bytes = link::max_reply_bytes(gate_->link_options(0));
  capabilities_.max_letter_bytes = std::min(link::max_letter_bytes, frame_bytes - sizeof(link::FrameHeader));
  auto target = UcxTarget::create(*context_, *gate_, options_.receive_bytes);
  if (!target.is_ok()) return target.take_status();
  target_ = std::move(target.value());
  auto origin = UcxOrigin::create(*context_, *gate_,
                                  {.timeout_ns = options_.timeout_ns,
                                   .now_ns = options_.now_ns,
                                   .on_lost = options_.on_lost,
                                   .on_hand_over = options_.on_hand_over});
  if (!origin.is_ok()) return origin.take_status();
  origin_ = std::move(origin.value());
  return {};
}

std::span<const std::byte> UcxTransport::address() const { return target_->address(); }

Status UcxTransport::let_in_only(const std::vector<std::uint32_t>& hosts) {
  if (Status status = target_->let_in_only(hosts); !status.is_ok()) return status;
  return origin_->let_in_only(hosts);
}

void UcxTransport::introduce(Rank peer, std::span<const std::byte> address) { origin_->introduce(peer, address); }

std::uint64_t UcxTransport::bytes_of_known_peer() { return UcxOrigin::bytes_of_peer(); }

std::uint64_t UcxTransport::bytes_of_asking_peer() { return UcxTarget::bytes_of_peer(); }

void UcxTransport::open(Rank peer) { origin_->open(peer); }

link::LinkState UcxTransport::state(Rank peer) const { return origin_->state(peer); }

// ---- asking

Capabilities UcxTransport::capabilities(Rank) const { return capabilities_; }

std::optional<std::uint64_t> UcxTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                    std::span<const std::byte> body, const PostOptions& options) {
  if (head.size() + body.size() > capabilities_.max_message_bytes ||
      options.reply_capacity > capabilities_.max_reply_bytes) {
    return std::nullopt;
  }
  return origin_->try_post(peer, head, body, options);
}

bool UcxTransport::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  require_of_letter(header.size() + body.size() <= capabilities_.max_letter_bytes,
                    "is longer than the network carries");
  return origin_->try_letter(to, header, body);
}

std::size_t UcxTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  return origin_->poll_replies(peer, handler);
}

std::size_t UcxTransport::poll_replies_unattended(Rank peer, ReplyHandler& handler) {
  return origin_->poll_replies_unattended(peer, handler);
}

void UcxTransport::abandon(Rank peer) { origin_->abandon(peer); }

void UcxTransport::hand_over() { origin_->hand_over(); }

void UcxTransport::expect_receipts() { origin_->expect_receipts(); }

bool UcxTransport::tick() { return origin_->tick(); }

std::uint64_t UcxTransport::next_deadline_ns() { return origin_->next_deadline_ns(); }

bool UcxTransport::is_unattended(Threads threads) { return origin_->is_unattended(threads); }

int UcxTransport::reply_descriptor() const { return origin_->descriptor(); }

Result<bool> UcxTransport::arm_replies() { return origin_->arm(); }

Transfer UcxTransport::read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) { return Transfer::refused; }

Transfer UcxTransport::write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) {
  return Transfer::refused;
}

// ---- serving

void UcxTransport::deliver_letters_to(LetterHandler& handler) { target_->deliver_letters_to(handler); }

std::size_t UcxTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  return target_->poll_requests(handler, budget);
}

bool UcxTransport::has_unfinished_request() const { return target_->has_unfinished_request(); }

void UcxTransport::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  target_->complete(token, code, reply);
}

int UcxTransport::request_descriptor() const { return target_->descriptor(); }

Result<bool> UcxTransport::arm_requests() { return target_->arm(); }

// ---- the end

bool UcxTransport::has_said_and_heard_goodbye() {
  return origin_->has_said_goodbye() &&
         target_->has_heard_goodbye([this](Rank peer) { return origin_->is_lost(peer); });
}

// Rests until something comes, or a little while for what tells of nothing.
void UcxTransport::rest() {
  const auto has_something = [](const Result<bool>& armed) { return armed.is_ok() && !armed.value(); };
  if (has_something(arm_replies()) || has_something(arm_requests())) return;
  pollfd descriptors[] = {{.fd = reply_descriptor(), .events = POLLIN, .revents = 0},
                          {.fd = request_descriptor(), .events = POLLIN, .revents = 0}};
  constexpr int while_ms = 10;
  poll(descriptors, std::size(descriptors), while_ms);
}

void UcxTransport::close(RequestHandler& handler) {
  const std::uint64_t end = options_.now_ns() + most_closing_ns;
  for (;;) {
    tick();
    poll_requests(handler, 64);
    if (has_said_and_heard_goodbye() || options_.now_ns() >= end) return;
    rest();
  }
}

NetworkCounters UcxTransport::counters() const {
  // Relaxed: counts, of which nobody concludes anything about another.
  const auto get = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  NetworkCounters all;
  const auto add = [&](const UcxConnections::Counters& half, NetworkCounters::Way& way) {
    way = {get(half.frames_sent), get(half.bytes_sent), get(half.frames_received), get(half.bytes_received)};
    all.endpoints += get(half.endpoints);
    all.connections += get(half.connections);
  };
  add(origin_->traffic(), all.asking);
  add(target_->traffic(), all.serving);
  all.strangers = gate_->strangers();
  all.refused = gate_->refused();
  all.peers = origin_->peers();
  all.peer_bytes = origin_->peer_bytes() + target_->peer_bytes();
  return all;
}

}  // namespace farsum
