#include "transport/ucx/ucx_origin.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr unsigned to_target = 1;  // channel of UcxWorker
// A connection that is closed by force lets go of what it holds within a few rounds.
constexpr int most_ending_rounds = 10'000;

}  // namespace

// The half while its mutex is held; what is to be handed over is told of when it no longer is.
class UcxOrigin::Driving {
 public:
  explicit Driving(UcxOrigin& half) : half_(half), lock_(half.drive_) {}
  ~Driving() {
    if (!std::exchange(half_.to_hand_over_, false)) return;
    lock_.unlock();
    if (half_.options_.on_hand_over) half_.options_.on_hand_over();
  }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;

 private:
  UcxOrigin& half_;
  std::unique_lock<std::mutex> lock_;
};

// ---- set-up

UcxOrigin::UcxOrigin(FrameGate& gate, Options options)
    : gate_(gate), options_(std::move(options)), links_(gate.ranks()) {}
UcxOrigin::~UcxOrigin() = default;

Result<std::unique_ptr<UcxOrigin>> UcxOrigin::create(UcxContext& context, FrameGate& gate, Options options) {
  std::unique_ptr<UcxOrigin> made(new UcxOrigin(gate, std::move(options)));
  auto connections = UcxConnections::create(context, *made, to_target);
  if (!connections.is_ok()) return connections.take_status();
  made->connections_ = std::move(connections.value());
  return made;
}

Status UcxOrigin::let_in_only(const std::vector<std::uint32_t>& hosts) {
  const std::lock_guard lock(drive_);
  return connections_->worker().let_in_only(hosts);
}

void UcxOrigin::introduce(Rank peer, std::span<const std::byte> address) {
  const std::lock_guard lock(drive_);
  if (peer == gate_.rank() || peer >= gate_.ranks() || links_.find(peer) != nullptr) return;
  link::SenderOptions options;
  static_cast<link::LinkOptions&>(options) = gate_.link_options(peer);
  options.address = connections_->worker().address();
  options.timeout_ns = options_.timeout_ns;
  if (options_.timeout_ns != 0) {
    options.ping_after_ns = options_.timeout_ns / 6;
    options.reconnect_after_ns = options_.timeout_ns / 3;
  }
  links_.add(options, connections_->wire(peer, address));
  // Relaxed: see peers().
  peers_.fetch_add(1, std::memory_order_relaxed);
  peer_bytes_.fetch_add(bytes_of_peer() + address.size(), std::memory_order_relaxed);
}

void UcxOrigin::open(Rank peer) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(peer);
  if (asking == nullptr) return;
  asking->link.open(options_.now_ns());
  note(*asking);
  connections_->dispatch();
  hand_over_held();
}

link::LinkState UcxOrigin::state(Rank peer) const {
  const std::lock_guard lock(drive_);
  const AskingLink* const asking = links_.find(peer);
  return asking != nullptr ? asking->link.state() : link::LinkState::idle;
}

bool UcxOrigin::is_lost(Rank peer) const {
  const std::lock_guard lock(drive_);
  const AskingLink* const asking = links_.find(peer);
  return asking != nullptr && asking->is_lost;
}

// ---- asking

std::optional<std::uint64_t> UcxOrigin::try_post(Rank peer, std::span<const std::byte> head,
                                                 std::span<const std::byte> body, const PostOptions& options) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(peer);
  if (asking == nullptr) return std::nullopt;
  const link::Post post{.head = head,
                        .body = body,
                        .reply_capacity = options.reply_capacity,
                        .reply_into = options.reply_into,
                        .borrow_body = options.lends_body,
                        .may_wait = options.may_wait,
                        .may_hold = options.may_keep};
  const auto ticket = asking->link.post(post, options_.now_ns());
  note(*asking);
  connections_->dispatch();
  // Whoever posts may compute next, and what has not left by now would stay here.
  const bool has_left = asking->link.state() == link::LinkState::open && asking->link.is_quiet();
  if (!ticket || !has_left) hand_over_held();
  return ticket;
}

bool UcxOrigin::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(to);
  require_of_letter(asking != nullptr, "goes to a rank that the network was not introduced to");
  // Takes in what was asked for, so that nobody need be woken for it.
  if (asking->link.has_many_letters()) take_in();
  const bool is_taken = asking->link.post_letter(header, body, options_.now_ns());
  note(*asking);
  connections_->dispatch();
  if (asking->link.has_letters_to_send()) take_in();
  // Other peers' replies may have been taken in.
  act(care_.taken_beside(0));
  // Who could not send it may sleep until there is room.
  if (!is_taken) hand_over_held();
  look_after_letters(*asking);
  return is_taken;
}

// Whoever sends a letter may compute next: what has not left stays here without the agent, which must also come by when
// the link's time is over.
void UcxOrigin::look_after_letters(const AskingLink& asking) {
  if (asking.link.has_letters_to_send()) hand_over_held();
  const std::uint64_t next = asking.link.next_deadline_ns();
  if (next >= agent_comes_at_ns_) return;
  agent_comes_at_ns_ = next;
  to_hand_over_ = true;
}

void UcxOrigin::abandon(Rank peer) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(peer);
  if (asking == nullptr) return;
  asking->is_lost = true;  // nobody is told: it is not the peer that failed
  asking->link.give_up(Code::peer_failed);
  connections_->dispatch();
  for (int i = 0; i < most_ending_rounds && !asking->link.is_quiet(); ++i) connections_->progress();
  drop_undelivered(*asking);
}

std::size_t UcxOrigin::poll_replies(Rank peer, ReplyHandler& handler) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(peer);
  if (asking == nullptr) return 0;
  send_held(*asking);
  const std::size_t count = take_replies(*asking, handler);
  if (count != 0 && care_.has_agent()) links_.drop_idle();
  using UnderWay = link::ReplyCare::UnderWay;
  act(care_.polled(count, care_.has_agent() ? links_.under_way() : UnderWay::nothing));
  return count;
}

std::size_t UcxOrigin::poll_replies_unattended(Rank peer, ReplyHandler& handler) {
  const Driving driving(*this);
  AskingLink* const asking = links_.find(peer);
  if (asking == nullptr) return 0;
  const std::size_t count = take_replies(*asking, handler);
  // A thread asks so, too, and may have taken in what another sleeps for.
  act(care_.taken_beside(count));
  return count;
}

std::size_t UcxOrigin::take_replies(AskingLink& asking, ReplyHandler& handler) {
  // It looks no further than to a short frame that has come for it: what comes behind that is found by the next look.
  for (int i = 0; i < most_rounds && !asking.has_short_undelivered && connections_->progress() != 0; ++i) {
  }
  asking.has_short_undelivered = false;
  look_at_time(asking, options_.now_ns());
  std::size_t count = 0;
  asking.link.take_replies([&](std::uint64_t ticket, Code code, std::span<const std::byte> data) {
    ++count;
    handler.on_reply(asking.peer, ticket, code, data);
  });
  connections_->dispatch();
  drop_undelivered(asking);
  return count;
}

// Takes in what has come; whether anything had.
bool UcxOrigin::take_in() {
  bool any = false;
  for (int i = 0; i < most_rounds && connections_->progress() != 0; ++i) any = true;
  return any;
}

void UcxOrigin::act(link::ReplyCare::Action action) {
  if (action == link::ReplyCare::Action::rouse) to_hand_over_ = true;
}

void UcxOrigin::hand_over() {
  const Driving driving(*this);
  links_.send_held([this](AskingLink& asking) { send_held(asking); });
  take_in();
  act(care_.hand_over());
}

void UcxOrigin::hand_over_held() { act(care_.left_behind(links_.under_way())); }

void UcxOrigin::look_at_time(AskingLink& asking, std::uint64_t now_ns) {
  if (now_ns < asking.link.next_deadline_ns()) return;
  asking.link.tick(now_ns);
  note(asking);
}

// What has come is taken in first: it may be all that is expected.
void UcxOrigin::expect_receipts() {
  const Driving driving(*this);
  take_in();
  act(care_.taken_beside(0));
  for (const auto& asking : links_.all()) {
    if (!asking || !asking->link.has_unreceived_letters()) continue;
    asking->link.expect_receipts(options_.now_ns());
    note(*asking);
    look_after_letters(*asking);
  }
  connections_->dispatch();
}

bool UcxOrigin::tick() {
  const Driving driving(*this);
  care_.agent_came();
  bool any = take_in();
  const std::uint64_t now = options_.now_ns();
  any = links_.look_at_due(now, [&](AskingLink& asking) { look_at_time(asking, now); }) || any;
  connections_->dispatch();
  links_.drop_idle();
  // A connection that broke meanwhile is made anew by nobody else.
  if (links_.has_letters_to_send()) hand_over_held();
  return any;
}

std::uint64_t UcxOrigin::next_deadline_ns() {
  const std::lock_guard lock(drive_);
  agent_comes_at_ns_ = std::min(care_.ask_at_ns(), links_.next_deadline_ns());
  return agent_comes_at_ns_;
}

bool UcxOrigin::is_unattended(Network::Threads threads) {
  const std::lock_guard lock(drive_);
  links_.drop_idle();
  care_.agent_asks(threads, links_.under_way(), options_.now_ns());
  return care_.has_agent();
}

Result<bool> UcxOrigin::arm() {
  const std::lock_guard lock(drive_);
  return connections_->worker().arm();
}

std::string UcxOrigin::why(const AskingLink& asking) const {
  switch (asking.link.end()) {
    case link::LinkEnd::silence: {
      const std::string refusal = connections_->refusal(asking.peer);
      return fmt::format("nothing heard for {} s (FARSUM_NET_TIMEOUT){}{}", options_.timeout_ns / 1'000'000'000,
                         refusal.empty() ? "" : "; ", refusal);
    }
    case link::LinkEnd::refused:
      return "it was told that this rank is dead, and refuses it";
    case link::LinkEnd::none:
    case link::LinkEnd::given_up:
      break;
  }
  return "it was given up here";
}

// ---- what the connections tell

void UcxOrigin::on_frame(std::span<const std::byte> bytes) {
  link::Frame frame;
  if (!gate_.let_through(bytes, frame)) return;
  if (frame.header.kind == link::FrameKind::hello_ack) connections_->worker().mark_accepted_sockets();
  AskingLink* const asking = links_.find(frame.header.from);
  if (asking == nullptr) return gate_.refuse();
  const bool was_lost = asking->is_lost;
  gate_.pass_on(asking->link, frame, options_.now_ns());
  note(*asking);
  // What only keeps the link going is for nobody, nor is what comes behind its end.
  const link::LinkSender& link = asking->link;
  const bool is_for_somebody =
      link.has_replies() || link.wants_credit() || link.has_room_for_refused_letter() || asking->is_lost;
  if (was_lost || !is_for_somebody) return;
  note_undelivered(*asking);
  asking->has_short_undelivered = asking->has_short_undelivered || bytes.size() <= short_frame_bytes;
}

void UcxOrigin::on_sent(Rank peer, link::FrameId id, bool ok) {
  AskingLink& asking = *links_.find(peer);
  asking.link.on_sent(id, ok, options_.now_ns());
  note(asking);
  if (asking.link.has_room_for_refused_letter()) note_undelivered(asking);
}

void UcxOrigin::on_broken(Rank peer, std::uint32_t epoch) {
  links_.find(peer)->link.on_broken(epoch, options_.now_ns());
  note(*links_.find(peer));
}

void UcxOrigin::on_disconnected(Rank peer, std::uint32_t epoch) {
  links_.find(peer)->link.on_disconnected(epoch, options_.now_ns());
  note(*links_.find(peer));
}

void UcxOrigin::note(AskingLink& asking) noexcept {
  // It is told at once: whoever takes the replies looks for who is lost.
  if (links_.note(asking) && options_.on_lost) options_.on_lost(asking.peer, why(asking));
}

void UcxOrigin::note_undelivered(AskingLink& asking) {
  if (!std::exchange(asking.has_undelivered, true)) care_.undelivered_came();
}

void UcxOrigin::drop_undelivered(AskingLink& asking) {
  if (std::exchange(asking.has_undelivered, false)) care_.undelivered_went();
}

void UcxOrigin::send_held(AskingLink& asking) {
  if (!asking.link.holds_back()) return;
  asking.link.flush(options_.now_ns());
  note(asking);
}

// ---- the end

bool UcxOrigin::has_said_goodbye() {
  const Driving driving(*this);
  bool all = true;
  for (const auto& asking : links_.all()) {
    if (!asking) continue;
    asking->link.close(options_.now_ns());
    note(*asking);
    all = all && asking->link.state() >= link::LinkState::closed;
  }
  connections_->dispatch();
  return all;
}

}  // namespace farsum
