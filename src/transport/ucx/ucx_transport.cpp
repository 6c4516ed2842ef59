#include "transport/ucx/ucx_transport.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr unsigned to_target = 1, to_origin = 2;  // channels of UcxWorker
constexpr std::uint64_t most_closing_ns = 2'000'000'000;
// A connection that is closed by force lets go of what it holds within a few rounds.
constexpr int most_ending_rounds = 10'000;

// One such frame is answered, or what it answers handed over, before its half looks for more: somebody most likely
// waits. In a stream of longer ones, or of many, that would cost more than it gains.
constexpr std::size_t short_frame_bytes = 5120;

bool drive(UcxConnections& connections) {
  bool any = false;
  for (int i = 0; i < most_rounds && connections.progress() != 0; ++i) any = true;
  return any;
}

}  // namespace

// Puts off what is above the budget of a turn. The frame that uses it up is served whole: putting off its rest would
// cost a copy of each request and an acknowledgement more.
class UcxTransport::Turn final : public RequestHandler {
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

// The origin half while its mutex is held; what is to be handed over is told of when it no longer is.
class UcxTransport::Driving {
 public:
  explicit Driving(UcxTransport& transport) : transport_(transport), lock_(transport.drive_) {}
  ~Driving() {
    if (!std::exchange(transport_.to_hand_over_, false)) return;
    lock_.unlock();
    if (transport_.options_.on_hand_over) transport_.options_.on_hand_over();
  }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;

 private:
  UcxTransport& transport_;
  std::unique_lock<std::mutex> lock_;
};

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
  capabilities_.late_replies = true;
  capabilities_.separate_replies = true;
  capabilities_.keeps = true;
  capabilities_.max_message_bytes = link::max_message_bytes(link_options(0));
  capabilities_.max_reply_bytes = link::max_reply_bytes(link_options(0));
  capabilities_.max_letter_bytes = std::min(link::max_letter_bytes, frame_bytes_ - sizeof(link::FrameHeader));
  origin_.links.resize(options_.ranks);
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
  if (peer == options_.rank || peer >= options_.ranks || origin_.find(peer) != nullptr) return;
  link::SenderOptions options;
  static_cast<link::LinkOptions&>(options) = link_options(peer);
  options.full_frames = &origin_.full_frames;
  options.address = origin_.connections->worker().address();
  options.timeout_ns = options_.timeout_ns;
  if (options_.timeout_ns != 0) {
    options.ping_after_ns = options_.timeout_ns / 6;
    options.reconnect_after_ns = options_.timeout_ns / 3;
  }
  origin_.links[peer] = std::make_unique<Asking>(options, origin_.connections->wire(peer, address));
  // Relaxed: see let_through().
  peers_.fetch_add(1, std::memory_order_relaxed);
  peer_bytes_.fetch_add(bytes_of_known_peer() + address.size(), std::memory_order_relaxed);
}

std::uint64_t UcxTransport::bytes_of_known_peer() {
  return sizeof(std::unique_ptr<Asking>) + sizeof(Asking) + UcxConnections::bytes_of_peer();
}

std::uint64_t UcxTransport::bytes_of_asking_peer() {
  return sizeof(decltype(TargetHalf::receivers)::value_type) + UcxConnections::bytes_of_peer();
}

void UcxTransport::open(Rank peer) {
  const Driving driving(*this);
  Asking* const asking = origin_.find(peer);
  if (asking == nullptr) return;
  asking->link.open(options_.now_ns());
  origin_.note(*asking);
  origin_.connections->dispatch();
  hand_over_held();
}

link::LinkState UcxTransport::state(Rank peer) const {
  const std::lock_guard lock(drive_);
  const Asking* const asking = origin_.find(peer);
  return asking != nullptr ? asking->link.state() : link::LinkState::idle;
}

// ---- asking

Capabilities UcxTransport::capabilities(Rank) const { return capabilities_; }

std::optional<std::uint64_t> UcxTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                    std::span<const std::byte> body, const PostOptions& options) {
  if (head.size() + body.size() > capabilities_.max_message_bytes ||
      options.reply_capacity > capabilities_.max_reply_bytes) {
    return std::nullopt;
  }
  const Driving driving(*this);
  Asking* const asking = origin_.find(peer);
  if (asking == nullptr) return std::nullopt;
  const link::Post post{.head = head,
                        .body = body,
                        .reply_capacity = options.reply_capacity,
                        .reply_into = options.reply_into,
                        .borrow_body = options.lends_body,
                        .may_wait = options.may_wait,
                        .may_hold = options.may_keep};
  const auto ticket = asking->link.post(post, options_.now_ns());
  origin_.note(*asking);
  origin_.connections->dispatch();
  // Whoever posts may compute next, and what has not left by now would stay here.
  const bool has_left = asking->link.state() == link::LinkState::open && asking->link.is_quiet();
  if (!ticket || !has_left) hand_over_held();
  return ticket;
}

bool UcxTransport::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  require_of_letter(header.size() + body.size() <= capabilities_.max_letter_bytes,
                    "is longer than the network carries");
  const Driving driving(*this);
  Asking* const asking = origin_.find(to);
  require_of_letter(asking != nullptr, "goes to a rank that the network was not introduced to");
  // Takes in what was asked for, so that nobody need be woken for it.
  if (asking->link.has_many_letters()) drive(*origin_.connections);
  const bool is_taken = asking->link.post_letter(header, body, options_.now_ns());
  origin_.note(*asking);
  origin_.connections->dispatch();
  if (asking->link.has_letters_to_send()) drive(*origin_.connections);
  // Other peers' replies may have been taken in.
  act(origin_.care.taken_beside(0));
  // Who could not send it may sleep until there is room.
  if (!is_taken) hand_over_held();
  look_after_letters(*asking);
  return is_taken;
}

// Whoever sends a letter may compute next: what has not left stays here without the agent, which must also come by when
// the link's time is over.
void UcxTransport::look_after_letters(const Asking& asking) {
  if (asking.link.has_letters_to_send()) hand_over_held();
  const std::uint64_t next = asking.link.next_deadline_ns();
  if (next >= agent_comes_at_ns_) return;
  agent_comes_at_ns_ = next;
  to_hand_over_ = true;
}

void UcxTransport::abandon(Rank peer) {
  const Driving driving(*this);
  Asking* const asking = origin_.find(peer);
  if (asking == nullptr) return;
  asking->is_lost = true;  // nobody is told: it is not the peer that failed
  asking->link.give_up(Code::peer_failed);
  origin_.connections->dispatch();
  for (int i = 0; i < most_ending_rounds && !asking->link.is_quiet(); ++i) origin_.connections->progress();
  origin_.drop_undelivered(*asking);
}

std::size_t UcxTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  const Driving driving(*this);
  Asking* const asking = origin_.find(peer);
  if (asking == nullptr) return 0;
  origin_.send_held(*asking);
  const std::size_t count = take_replies(*asking, handler);
  if (count != 0 && origin_.care.has_agent()) origin_.drop_idle();
  using UnderWay = link::ReplyCare::UnderWay;
  act(origin_.care.polled(count, origin_.care.has_agent() ? origin_.under_way() : UnderWay::nothing));
  return count;
}

std::size_t UcxTransport::poll_replies_unattended(Rank peer, ReplyHandler& handler) {
  const Driving driving(*this);
  Asking* const asking = origin_.find(peer);
  if (asking == nullptr) return 0;
  const std::size_t count = take_replies(*asking, handler);
  // A thread asks so, too, and may have taken in what another sleeps for.
  act(origin_.care.taken_beside(count));
  return count;
}

std::size_t UcxTransport::take_replies(Asking& asking, ReplyHandler& handler) {
  // It looks no further than to a short frame that has come for it: what comes behind that is found by the next look.
  for (int i = 0; i < most_rounds && !asking.has_short_undelivered && origin_.connections->progress() != 0; ++i) {
  }
  asking.has_short_undelivered = false;
  look_at_time(asking, options_.now_ns());
  std::size_t count = 0;
  asking.link.take_replies([&](std::uint64_t ticket, Code code, std::span<const std::byte> data) {
    ++count;
    handler.on_reply(asking.peer, ticket, code, data);
  });
  origin_.connections->dispatch();
  origin_.drop_undelivered(asking);
  return count;
}

void UcxTransport::act(link::ReplyCare::Action action) {
  if (action == link::ReplyCare::Action::rouse) to_hand_over_ = true;
}

void UcxTransport::hand_over() {
  const Driving driving(*this);
  for (Asking* asking : origin_.holding) {
    asking->is_holding = false;
    origin_.send_held(*asking);
  }
  origin_.holding.clear();
  drive(*origin_.connections);
  act(origin_.care.hand_over());
}

void UcxTransport::hand_over_held() { act(origin_.care.left_behind(origin_.under_way())); }

void UcxTransport::look_at_time(Asking& asking, std::uint64_t now_ns) {
  if (now_ns < asking.link.next_deadline_ns()) return;
  asking.link.tick(now_ns);
  origin_.note(asking);
}

// What has come is taken in first: it may be all that is expected.
void UcxTransport::expect_receipts() {
  const Driving driving(*this);
  drive(*origin_.connections);
  act(origin_.care.taken_beside(0));
  for (const auto& asking : origin_.links) {
    if (!asking || !asking->link.has_unreceived_letters()) continue;
    asking->link.expect_receipts(options_.now_ns());
    origin_.note(*asking);
    look_after_letters(*asking);
  }
  origin_.connections->dispatch();
}

bool UcxTransport::tick() {
  const Driving driving(*this);
  origin_.care.agent_came();
  bool any = drive(*origin_.connections);
  const std::uint64_t now = options_.now_ns();
  for (std::size_t i = 0; i < origin_.busy.size(); ++i) {
    if (now < origin_.busy[i]->link.next_deadline_ns()) continue;
    look_at_time(*origin_.busy[i], now);
    any = true;
  }
  origin_.connections->dispatch();
  origin_.drop_idle();
  // A connection that broke meanwhile is made anew by nobody else.
  if (origin_.has_letters_to_send()) hand_over_held();
  return any;
}

std::uint64_t UcxTransport::next_deadline_ns() {
  const std::lock_guard lock(drive_);
  std::uint64_t next = origin_.care.ask_at_ns();
  for (const Asking* asking : origin_.busy) next = std::min(next, asking->link.next_deadline_ns());
  agent_comes_at_ns_ = next;
  return next;
}

bool UcxTransport::is_unattended(Threads threads) {
  const std::lock_guard lock(drive_);
  origin_.drop_idle();
  origin_.care.agent_asks(threads, origin_.under_way(), options_.now_ns());
  return origin_.care.has_agent();
}

std::string UcxTransport::why(const Asking& asking) const {
  switch (asking.link.end()) {
    case link::LinkEnd::silence: {
      const std::string refusal = origin_.connections->refusal(asking.peer);
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

bool UcxTransport::let_through(std::span<const std::byte> bytes, link::Frame& frame) {
  const link::Fault fault = link::decode(bytes, options_.secret, options_.rank, frame);
  if (fault == link::Fault::none && frame.header.from < options_.ranks) return true;
  const bool knows_the_secret = fault == link::Fault::none || fault == link::Fault::malformed;
  // Relaxed: a count, read by nobody who concludes anything from it.
  (knows_the_secret ? refused_ : strangers_).fetch_add(1, std::memory_order_relaxed);
  return false;
}

// Passes a frame on to the link that it is for, and counts what that finds wrong with it.
template <class Link, class... Arguments>
void UcxTransport::pass_on(Link& link, const link::Frame& frame, Arguments&&... arguments) {
  const auto refused = [&] { return link.counters().malformed + link.counters().before_hello; };
  const std::uint64_t before = refused();
  link.on_frame(frame, std::forward<Arguments>(arguments)...);
  // Relaxed: see let_through().
  if (const std::uint64_t more = refused() - before; more != 0) refused_.fetch_add(more, std::memory_order_relaxed);
}

void UcxTransport::OriginHalf::on_frame(std::span<const std::byte> bytes) {
  link::Frame frame;
  if (!owner.let_through(bytes, frame)) return;
  if (frame.header.kind == link::FrameKind::hello_ack) connections->worker().mark_accepted_sockets();
  Asking* const asking = find(frame.header.from);
  if (asking == nullptr) {
    // Relaxed: see let_through().
    owner.refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const bool was_lost = asking->is_lost;
  owner.pass_on(asking->link, frame, owner.options_.now_ns());
  note(*asking);
  // What only keeps the link going is for nobody, nor is what comes behind its end.
  const link::LinkSender& link = asking->link;
  const bool is_for_somebody =
      link.has_replies() || link.wants_credit() || link.has_room_for_refused_letter() || asking->is_lost;
  if (was_lost || !is_for_somebody) return;
  note_undelivered(*asking);
  asking->has_short_undelivered = asking->has_short_undelivered || bytes.size() <= short_frame_bytes;
}

void UcxTransport::OriginHalf::on_sent(Rank peer, link::FrameId id, bool ok) {
  Asking& asking = *find(peer);
  asking.link.on_sent(id, ok, owner.options_.now_ns());
  note(asking);
  if (asking.link.has_room_for_refused_letter()) note_undelivered(asking);
}

void UcxTransport::OriginHalf::on_broken(Rank peer, std::uint32_t epoch) {
  find(peer)->link.on_broken(epoch, owner.options_.now_ns());
  note(*find(peer));
}

void UcxTransport::OriginHalf::on_disconnected(Rank peer, std::uint32_t epoch) {
  find(peer)->link.on_disconnected(epoch, owner.options_.now_ns());
  note(*find(peer));
}

// To be called after whatever may have given a link something to do, or ended it.
void UcxTransport::OriginHalf::note(Asking& asking) noexcept {
  if (!asking.is_busy && asking.link.next_deadline_ns() != never) {
    asking.is_busy = true;
    busy.push_back(&asking);
  }
  if (!asking.is_holding && asking.link.holds_back()) {
    asking.is_holding = true;
    holding.push_back(&asking);
  }
  if (!asking.is_lost && asking.link.state() == link::LinkState::failed) {
    asking.is_lost = true;
    // It is told at once: whoever takes the replies looks for who is lost.
    if (owner.options_.on_lost) owner.options_.on_lost(asking.peer, owner.why(asking));
  }
}

link::ReplyCare::UnderWay UcxTransport::OriginHalf::under_way() const {
  const bool is_any = std::any_of(busy.begin(), busy.end(),
                                  [](const Asking* asking) { return !asking->link.waits_for_receipts_only(); });
  return is_any ? link::ReplyCare::UnderWay::something : link::ReplyCare::UnderWay::nothing;
}

bool UcxTransport::OriginHalf::has_letters_to_send() const {
  return std::any_of(busy.begin(), busy.end(), [](const Asking* asking) { return asking->link.has_letters_to_send(); });
}

void UcxTransport::OriginHalf::note_undelivered(Asking& asking) {
  if (!std::exchange(asking.has_undelivered, true)) care.undelivered_came();
}

void UcxTransport::OriginHalf::drop_undelivered(Asking& asking) {
  if (std::exchange(asking.has_undelivered, false)) care.undelivered_went();
}

void UcxTransport::OriginHalf::send_held(Asking& asking) {
  if (!asking.link.holds_back()) return;
  asking.link.flush(owner.options_.now_ns());
  note(asking);
}

void UcxTransport::OriginHalf::drop_idle() {
  for (std::size_t i = 0; i < busy.size();) {
    if (busy[i]->link.next_deadline_ns() != never) {
      ++i;
      continue;
    }
    busy[i]->is_busy = false;
    busy[i] = busy.back();
    busy.pop_back();
  }
}

// ---- serving

std::size_t UcxTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  Turn turn(handler, budget);
  target_.handler = &turn;
  for (const Rank peer : target_.parking) {
    target_.touch(peer);
    target_.receiver(peer)->serve_parked(turn, turn.left());
  }
  target_.parking.clear();  // at the turn's end those that still have some are noted anew
  for (int i = 0; i < most_rounds && turn.left() != 0 && target_.connections->progress() != 0; ++i) {
    if (turn.has_one_short_frame()) target_.end_turn();
  }
  target_.end_turn();
  target_.handler = nullptr;
  return turn.finished();
}

bool UcxTransport::has_unfinished_request() const {
  return std::any_of(target_.parking.begin(), target_.parking.end(),
                     [this](Rank peer) { return target_.receivers.at(peer).has_again(); });
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
  handler->begin_frame(bytes.size());
  link::LinkReceiver& link = receiver_made(peer);
  owner.pass_on(link, frame, *handler);
  touch(peer);
  if (link.has_much_to_grant()) link.end_turn();
}

void UcxTransport::TargetHalf::on_sent(Rank peer, link::FrameId id, bool ok) { receiver(peer)->on_sent(id, ok); }

void UcxTransport::TargetHalf::on_broken(Rank peer, std::uint32_t epoch) { receiver(peer)->on_broken(epoch); }

void UcxTransport::TargetHalf::on_disconnected(Rank peer, std::uint32_t epoch) {
  receiver(peer)->on_disconnected(epoch);
}

void UcxTransport::TargetHalf::on_letter(Rank from, std::span<const std::byte> letter) noexcept {
  // Acquire pairs with the release in deliver_letters_to().
  LetterHandler* const files = letters.load(std::memory_order_acquire);
  if (files != nullptr) return files->on_letter(from, letter);
  // Relaxed: see let_through().
  owner.refused_.fetch_add(1, std::memory_order_relaxed);
}

link::LinkReceiver* UcxTransport::TargetHalf::receiver(Rank peer) {
  const auto found = receivers.find(peer);
  return found == receivers.end() ? nullptr : &found->second;
}

link::LinkReceiver& UcxTransport::TargetHalf::receiver_made(Rank peer) {
  if (link::LinkReceiver* link = receiver(peer)) return *link;
  link::ReceiverOptions options;
  static_cast<link::LinkOptions&>(options) = owner.link_options(peer);
  options.full_frames = &full_frames;
  options.letters = this;
  link::LinkReceiver& made = receivers.try_emplace(peer, options, connections->wire(peer), *pool).first->second;
  // Relaxed: see let_through().
  owner.peer_bytes_.fetch_add(bytes_of_asking_peer(), std::memory_order_relaxed);
  return made;
}

void UcxTransport::TargetHalf::touch(Rank peer) {
  if (std::find(touched.begin(), touched.end(), peer) == touched.end()) touched.push_back(peer);
}

void UcxTransport::TargetHalf::end_turn() {
  for (const Rank peer : touched) {
    link::LinkReceiver& link = *receiver(peer);
    link.end_turn();
    const bool is_noted = std::find(parking.begin(), parking.end(), peer) != parking.end();
    if (link.has_again() && !is_noted) parking.push_back(peer);
  }
  touched.clear();
  pool->hand_out();
  connections->dispatch();
}

// ---- the end

bool UcxTransport::has_said_goodbye() {
  const Driving driving(*this);
  bool all = true;
  for (const auto& asking : origin_.links) {
    if (!asking) continue;
    asking->link.close(options_.now_ns());
    origin_.note(*asking);
    all = all && asking->link.state() >= link::LinkState::closed;
  }
  origin_.connections->dispatch();
  return all;
}

bool UcxTransport::has_heard_goodbye() {
  return std::all_of(target_.receivers.begin(), target_.receivers.end(), [this](const auto& entry) {
    const Asking* const asking = origin_.find(entry.first);
    const bool is_lost = asking != nullptr && asking->is_lost;
    return is_lost || (!entry.second.is_in_use() && entry.second.is_quiet());
  });
}

// Rests until something comes, or a little while for what tells of nothing.
void UcxTransport::rest() const {
  UcxWorker& asking = origin_.connections->worker();
  UcxWorker& serving = target_.connections->worker();
  for (UcxWorker* worker : {&asking, &serving}) {
    const Result<bool> armed = worker->arm();
    if (armed.is_ok() && !armed.value()) return;
  }
  pollfd descriptors[] = {{.fd = asking.event_descriptor(), .events = POLLIN, .revents = 0},
                          {.fd = serving.event_descriptor(), .events = POLLIN, .revents = 0}};
  constexpr int while_ms = 10;
  poll(descriptors, std::size(descriptors), while_ms);
}

void UcxTransport::close(RequestHandler& handler) {
  const std::uint64_t end = options_.now_ns() + most_closing_ns;
  for (;;) {
    tick();
    poll_requests(handler, 64);
    const bool is_over = has_said_goodbye() && has_heard_goodbye();
    if (is_over || options_.now_ns() >= end) return;
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
  add(origin_.connections->counters(), all.asking);
  add(target_.connections->counters(), all.serving);
  all.strangers = strangers();
  all.refused = get(refused_);
  all.peers = get(peers_);
  all.peer_bytes = get(peer_bytes_);
  return all;
}

}  // namespace farsum
