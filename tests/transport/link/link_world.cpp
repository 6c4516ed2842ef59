#include "link_world.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {
namespace {

constexpr std::byte poison{0xdb};
constexpr std::size_t borrow_from = 600;
constexpr std::uint64_t step_limit = 1'000'000;
const std::vector<std::byte> origin_address(79, std::byte{0x5a});

std::uint64_t hash_of(std::uint64_t hash, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return SimRandom::mix(hash ^ std::hash<std::string_view>()(text));
}

std::uint64_t hash_of(const std::vector<std::span<const std::byte>>& pieces) {
  std::uint64_t hash = 0;
  for (const std::span<const std::byte> piece : pieces) hash = hash_of(hash, piece);
  return hash;
}

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  SimRandom random(seed);
  for (std::size_t at = 0; at < bytes; ++at) made[at] = static_cast<std::byte>(random.next());
  return made;
}

}  // namespace

// ---- SimWire

void SimWire::check_limits(FrameId id) {
  std::size_t frames = 0;
  for (const Shared& flight : out_) {
    if (flight->id == id) world_.fail("two frames of one name are out");
    if (flight->id >> 62 == id >> 62) ++frames;
  }
  const bool is_letter = LetterBox::is_letter(id);
  const std::size_t most = is_letter ? letters_in_window : world_.options.frames_in_wire;
  if ((id >> 62 == 0 || is_letter) && frames >= most) world_.fail("too many frames are out");
}

void SimWire::check_header(const FrameHeader& header) {
  if (header.seen < seen_ || header.credit < credit_) world_.fail("what was acknowledged or allowed fell");
  seen_ = header.seen;
  credit_ = header.credit;
  if (!to_origin_) return;
  if (received_letters(header) < letters_) world_.fail("the count of received letters fell");
  letters_ = received_letters(header);
}

void SimWire::send(FrameId id, std::uint32_t epoch, std::span<const std::span<const std::byte>> pieces) {
  if (!connected_ || disconnecting_ || epoch != epoch_) return world_.fail("a frame leaves over no open connection");
  check_limits(id);
  auto flight = std::make_shared<Flight>();
  flight->id = id;
  flight->pieces.assign(pieces.begin(), pieces.end());
  flight->hash = hash_of(flight->pieces);
  FrameHeader header;
  std::memcpy(&header, pieces[0].data(), sizeof header);
  check_header(header);
  out_.push_back(flight);
  if (cut_) return;
  const bool overtakes = world_.random.once_in(world_.options.reordered_once_in);
  const SimTime arrival = world_.now + 5 * us + world_.random.below(10 * us) + (overtakes ? 40 * us : 0);
  const SimTime when = overtakes ? arrival : std::max(arrival, last_delivery_ + 1);
  if (!overtakes) last_delivery_ = when;
  world_.at(when, [this, flight] { deliver(flight); });
  if (world_.random.once_in(world_.options.doubled_once_in)) {
    world_.at(when + world_.random.below(1 * ms), [this, flight] {
      if (flight->delivered) world_.links[link_]->deliver(flight->copy, to_origin_);
    });
  }
  world_.at(world_.now + world_.random.below(200 * us), [this, flight, epoch] {
    if (!cut_ && epoch == epoch_) leave(flight, true);
  });
}

void SimWire::take_copy(Flight& flight) {
  if (hash_of(flight.pieces) != flight.hash) world_.fail("bytes changed while the wire read them");
  flight.copy.clear();
  for (const std::span<const std::byte> piece : flight.pieces) {
    flight.copy.insert(flight.copy.end(), piece.begin(), piece.end());
  }
}

void SimWire::deliver(const Shared& flight) {
  if (flight->lost || flight->delivered) return;
  if (world_.now < flight->not_before) {
    return world_.at(flight->not_before, [this, flight] { deliver(flight); });
  }
  if (!to_origin_ && world_.are_targets_stopped())
    return world_.at(world_.options.stopped_until_ns, [this, flight] { deliver(flight); });
  if (!flight->left) take_copy(*flight);
  flight->delivered = true;
  world_.links[link_]->deliver(flight->copy, to_origin_);
}

void SimWire::call_on_sent(FrameId id, bool ok) {
  SimLink& link = *world_.links[link_];
  if (to_origin_) {
    link.receiver.on_sent(id, ok);
  } else {
    link.sender.on_sent(id, ok, world_.now);
    if (link.sender.has_replies() || link.has_letters_to_post()) link.plan_drive(0);
  }
}

void SimWire::leave(const Shared& flight, bool ok) {
  if (flight->left) return;
  take_copy(*flight);
  flight->left = true;
  std::erase(out_, flight);
  call_on_sent(flight->id, ok);
}

void SimWire::connect(std::uint32_t epoch, std::span<const std::byte> address) {
  if (connected_) world_.fail("two connections at once");
  if (epoch <= epoch_) world_.fail("an epoch comes again");
  if (to_origin_ && !std::ranges::equal(address, origin_address)) world_.fail("the origin's address was lost");
  connected_ = true;
  disconnecting_ = false;
  cut_ = world_.now < world_.down_until;
  epoch_ = epoch;
}

void SimWire::disconnect(std::uint32_t epoch) {
  if (!connected_ || disconnecting_ || epoch != epoch_) return world_.fail("disconnects what is not connected");
  disconnecting_ = true;
  world_.at(world_.now + world_.random.below(1 * ms), [this, epoch] { end(epoch); });
}

void SimWire::end(std::uint32_t epoch) {
  cut();
  const std::vector<Shared> out = out_;
  for (const Shared& flight : out) leave(flight, world_.random.once_in(2));
  connected_ = false;
  SimLink& link = *world_.links[link_];
  if (to_origin_) {
    link.receiver.on_disconnected(epoch);
  } else {
    link.sender.on_disconnected(epoch, world_.now);
    link.plan_drive(0);
  }
}

void SimWire::cut() {
  if (!connected_ || cut_) return;
  cut_ = true;
  for (const Shared& flight : out_) {
    if (world_.random.once_in(2)) flight->lost = true;
    flight->not_before = world_.now + world_.random.below(100 * ms);
  }
  if (disconnecting_ || world_.random.once_in(4)) return;
  world_.at(world_.now + world_.random.below(5 * ms), [this, epoch = epoch_] {
    SimLink& link = *world_.links[link_];
    to_origin_ ? link.receiver.on_broken(epoch) : link.sender.on_broken(epoch, world_.now);
  });
}

// ---- SimLink

namespace {

LinkOptions of_half(const LinkWorld& world, Rank me, Rank peer) {
  LinkOptions options;
  options.me = me;
  options.peer = peer;
  options.secret = secret_of_tests();
  options.frames_in_wire = world.options.frames_in_wire;
  options.full_frames = world.full_frames.get();
  options.omission = world.options.omission;
  return options;
}

}  // namespace

SenderOptions SimLink::sender_options(const LinkWorld& world, const LinkPlan& plan) {
  SenderOptions options;
  static_cast<LinkOptions&>(options) = of_half(world, plan.from, plan.to);
  options.address = origin_address;
  options.may_wait_bytes = world.options.may_wait_bytes;
  options.timeout_ns = world.options.timeout_ns;
  return options;
}

ReceiverOptions SimLink::receiver_options(const LinkWorld& world, const LinkPlan& plan, LetterHandler& letters) {
  ReceiverOptions options;
  static_cast<LinkOptions&>(options) = of_half(world, plan.to, plan.from);
  options.most_window = world.options.most_window;
  options.letters = &letters;
  return options;
}

SimLink::SimLink(LinkWorld& world, std::size_t index, const LinkPlan& plan, CreditPool& pool)
    : to_target(world, index, false),
      to_origin(world, index, true),
      sender(sender_options(world, plan), to_target),
      receiver(receiver_options(world, plan, *this), to_origin, pool),
      world_(world),
      index_(index),
      plan_(plan),
      random_(world.random.split()),
      requests_left_(plan.requests),
      waits_left_(plan.waits) {}

std::vector<std::byte> SimLink::reply_of(std::uint64_t ticket) const {
  return pattern(ticket * 31 + 7, tickets_[ticket]->reply_bytes);
}

bool SimLink::post_one(bool waits) {
  auto ticket = std::make_unique<Ticket>();
  ticket->waits = waits;
  ticket->message = pattern(random_.next(), random_.below(plan_.most_message_bytes + 1));
  ticket->reply_capacity = random_.once_in(2) ? 0 : random_.below(plan_.most_reply_bytes + 1);
  ticket->reply_bytes = random_.below(ticket->reply_capacity + 1);
  ticket->agains = random_.once_in(world_.options.again_once_in) ? 1 + random_.below(3) : 0;
  // In every other world, for it also hides some of what goes wrong between turns.
  const bool may_put_off = world_.options.seed % 2 == 0 && random_.once_in(world_.options.again_once_in);
  ticket->put_offs = may_put_off ? 1 + random_.below(3) : 0;
  const std::size_t head = random_.below(std::min<std::size_t>(ticket->message.size(), 96) + 1);
  ticket->body.assign(ticket->message.begin() + head, ticket->message.end());
  if (random_.once_in(2)) ticket->reply_into.resize(ticket->reply_capacity);
  Post post;
  post.head = std::span(ticket->message).first(head);
  post.body = ticket->body;
  post.reply_capacity = ticket->reply_capacity;
  post.reply_into = ticket->reply_into;
  post.borrow_body = ticket->body.size() >= borrow_from;
  post.may_wait = waits;
  post.may_hold = random_.once_in(2);
  const std::optional<std::uint64_t> number = sender.post(post, world_.now);
  if (!number) return false;
  if (*number != tickets_.size()) world_.fail("tickets are not 0, 1, 2, ...");
  if (!post.borrow_body) std::ranges::fill(ticket->body, poison);
  tickets_.push_back(std::move(ticket));
  --(waits ? waits_left_ : requests_left_);
  return true;
}

// Lengths at both ends of what is allowed, and between them.
std::vector<std::byte> SimLink::letter_of(std::uint64_t number) const {
  const std::uint64_t drawn = SimRandom::mix(world_.options.seed * 1009 + index_ * 31 + number);
  const std::size_t lengths[] = {0, 8, drawn % 200, drawn % (max_letter_bytes + 1), max_letter_bytes};
  return pattern(drawn, lengths[drawn / 8192 % 5]);
}

// False where the window is full: what comes from the target, and what the wire lets go of, drives on.
bool SimLink::post_letters(std::uint64_t most) {
  for (; most != 0 && letters_posted_ != plan_.letters; --most) {
    std::vector<std::byte> letter = letter_of(letters_posted_);
    const std::size_t head = letter.size() / 3;
    if (!sender.post_letter(std::span(letter).first(head), std::span(letter).subspan(head), world_.now)) return false;
    std::ranges::fill(letter, poison);
    ++letters_posted_;
  }
  return true;
}

void SimLink::on_letter(Rank from, std::span<const std::byte> letter) noexcept {
  if (dead_) world_.fail("a letter of the dead was handed over");
  if (from != plan_.from || letters_taken_ >= letters_posted_) return world_.fail("a letter that nobody posted");
  if (!std::ranges::equal(letter, letter_of(letters_taken_++))) world_.fail("a letter came wrong, or out of order");
}

void SimLink::take() {
  sender.take_replies([this](std::uint64_t number, Code code, std::span<const std::byte> data) {
    if (number >= tickets_.size() || tickets_[number]->answered) return world_.fail("a reply to no open request");
    Ticket& ticket = *tickets_[number];
    ticket.answered = true;
    ++answered_;
    if (code == Code::peer_failed) {
      ++failed;
    } else if (code != Code::ok || !ticket.executed || !std::ranges::equal(data, reply_of(number))) {
      world_.fail("a reply is not that of its one execution");
    } else if (!data.empty() && !ticket.reply_into.empty() && data.data() != ticket.reply_into.data()) {
      world_.fail("a reply went elsewhere");
    }
    // Nobody may read or write these now.
    std::ranges::fill(ticket.body, poison);
    std::ranges::fill(ticket.reply_into, poison);
  });
}

void SimLink::drive() {
  drive_planned_ = false;
  if (program_stops) return;
  take();
  const bool posts_letters = has_letters_to_post() && post_letters(random_.below(8));
  while (waits_left_ != 0 && post_one(true)) {
  }
  const bool may_post = waits_left_ == 0 || !plan_.waits_first;
  for (std::uint64_t burst = 1 + random_.below(8); may_post && burst != 0 && requests_left_ != 0; --burst) {
    if (post_one(false)) continue;
    if (posts_letters) plan_drive(random_.below(20 * us));
    return;  // else what comes from the target drives on
  }
  // Nothing comes for what is held.
  if (requests_left_ == 0 || !may_post || random_.once_in(2)) sender.flush(world_.now);
  if ((may_post && requests_left_ != 0) || posts_letters) plan_drive(random_.below(20 * us));
}

void SimLink::plan_drive(SimTime delay) {
  if (std::exchange(drive_planned_, true)) return;
  world_.at(world_.now + delay, [this] { drive(); });
}

Served SimLink::finish(Ticket& ticket, std::span<std::byte> room) {
  if (ticket.executed) world_.fail("a request was executed twice");
  ticket.executed = true;
  const auto number = static_cast<std::uint64_t>(
      std::ranges::find_if(tickets_, [&](const auto& one) { return one.get() == &ticket; }) - tickets_.begin());
  std::ranges::copy(reply_of(number), room.begin());
  if (!ticket.waits) release_one();
  return {Served::Kind::done, Code::ok, static_cast<std::uint32_t>(ticket.reply_bytes)};
}

// Each request that was executed lets one go that waits, now and here or later.
void SimLink::release_one() {
  if (waiting_.empty()) {
    ++releases_;
    return;
  }
  const std::uint64_t number = waiting_.front();
  waiting_.erase(waiting_.begin());
  const auto complete = [this, number] {
    if (dead_) return;
    Ticket& ticket = *tickets_[number];
    ticket.executed = true;
    if (!std::ranges::equal(ticket.kept_message, ticket.message))
      world_.fail("the message of a waiting request is gone");
    receiver.complete(number, Code::ok, reply_of(number));
    plan_turn(0);
  };
  random_.once_in(2) ? complete() : world_.at(world_.now + random_.below(100 * us), complete);
}

Served SimLink::on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> room, ReplyToken token) {
  if (dead_) world_.fail("a request of the dead was served");
  if (from != plan_.from || token.peer != plan_.from || token.ticket >= tickets_.size()) {
    world_.fail("a request that nobody posted");
    return {};
  }
  Ticket& ticket = *tickets_[token.ticket];
  if (!std::ranges::equal(message, ticket.message)) world_.fail("a message came wrong");
  if (room.size() != ticket.reply_capacity) world_.fail("the room for a reply is wrong");
  // Before the first look, between two and after the last.
  if (ticket.put_offs != 0 && random_.once_in(2)) {
    --ticket.put_offs;
    return {.kind = Served::Kind::again, .is_untouched = true};
  }
  if (!std::exchange(ticket.first_seen, true)) {
    if (token.ticket != next_served_++) world_.fail("requests are served out of order");
  } else if (ticket.executed) {
    world_.fail("a request was served twice");
  } else if (!room.empty() && room[0] != poison) {
    world_.fail("what an unfinished request wrote to its room is gone");
  }
  if (ticket.agains != 0) {
    --ticket.agains;
    std::ranges::fill(room, poison);
    return {Served::Kind::again, Code::ok, 0};
  }
  if (!ticket.waits) return finish(ticket, room);
  if (releases_ != 0) {
    --releases_;
    return finish(ticket, room);
  }
  ticket.kept_message = message;
  waiting_.push_back(token.ticket);
  return {Served::Kind::later, Code::ok, 0};
}

void SimLink::deliver(std::span<const std::byte> bytes, bool to_origin_side) {
  Frame frame;
  const Fault fault = decode(bytes, secret_of_tests(), to_origin_side ? plan_.from : plan_.to, frame);
  if (fault != Fault::none) return world_.fail("an honest frame was refused");
  Fault obeyed;
  if (to_origin_side) {
    const bool is_old = frame.header.epoch < last_epoch_;
    obeyed = sender.on_frame(frame, world_.now);
    if (is_old && obeyed == Fault::none) world_.fail("a frame of an old connection was obeyed");
    plan_drive(random_.below(10 * us));
  } else {
    const bool is_old = frame.header.epoch < last_epoch_;
    obeyed = receiver.on_frame(frame, *this);
    if (receiver.has_much_to_grant()) receiver.end_turn();
    if (frame.header.kind == FrameKind::hello) last_epoch_ = std::max(last_epoch_, frame.header.epoch);
    if (is_old && obeyed == Fault::none) world_.fail("a frame of an old connection was obeyed");
    plan_turn(random_.below(3 * us));
  }
  if (obeyed == Fault::malformed) world_.fail("an honest frame was called malformed");
}

void SimLink::turn() {
  turn_planned_ = false;
  receiver.serve_parked(*this, 1 + random_.below(4));
  receiver.end_turn();
  world_.pools[plan_.to]->hand_out();
  if (receiver.has_again()) plan_turn(50 * us);
}

void SimLink::plan_turn(SimTime delay) {
  if (std::exchange(turn_planned_, true)) return;
  world_.at(world_.now + delay, [this] { turn(); });
}

void SimLink::declare_dead() {
  dead_ = true;
  receiver.forget_peer();
}

void SimLink::check() {
  if (receiver.held_bytes() > receiver.granted_bytes() && !receiver.is_closed() && !dead_) {
    world_.fail("the target holds more than it granted");
  }
  if (receiver.early_letter_bytes() > most_early_letter_bytes) world_.fail("the target keeps too many early letters");
  const bool is_asked =
      (sender.dues().has_unanswered() || sender.dues().has_unreceived()) && !sender.dues().holds_all_back();
  const bool is_owed = is_asked || sender.has_unreceived_letters();
  const bool is_due = is_owed || sender.state() == LinkState::connecting;
  const bool has_deadline = sender.next_deadline_ns() != LinkSender::never;
  if (is_due && !has_deadline && sender.state() < LinkState::closed)
    world_.fail("something is due and no deadline set");
  if (!is_due && has_deadline && sender.state() == LinkState::open && !sender.wants_credit()) {
    world_.fail("an idle link has a deadline");
  }
}

// ---- LinkWorld

LinkWorld::LinkWorld(WorldOptions chosen) : options(std::move(chosen)), random(options.seed) {
  for (std::size_t i = 0; i < options.links.size(); ++i) {
    const LinkPlan& plan = options.links[i];
    std::unique_ptr<CreditPool>& pool = pools[plan.to];
    if (pool == nullptr) pool = std::make_unique<CreditPool>(options.budget_bytes, options.peers);
    links.push_back(std::make_unique<SimLink>(*this, i, plan, *pool));
  }
  for (const auto& link : links) link->plan_drive(random.below(50 * us));
}

void LinkWorld::at(SimTime when, std::function<void()> event) { events_.push({when, order_++, std::move(event)}); }

void LinkWorld::fail(std::string_view what) {
  if (failure_.empty()) failure_ = what;
}

void LinkWorld::check() {
  for (const auto& [rank, pool] : pools) {
    if (pool->used() > pool->total()) fail("the pool gave more than it has");
    peak_used = std::max(peak_used, pool->used());
  }
}

// One event, or the passing of time until a sender's deadline; false where nothing is left before until_ns.
bool LinkWorld::step(SimTime until_ns) {
  SimTime deadline = LinkSender::never;
  if (links.size() <= 8 || events_.empty()) {
    for (const auto& link : links) deadline = std::min(deadline, link->sender.next_deadline_ns());
  }
  const SimTime next = std::min(deadline, events_.empty() ? LinkSender::never : events_.top().when);
  if (next == LinkSender::never || next > until_ns || has_failed()) return false;
  now = std::max(now, next);
  if (++steps_ > step_limit || now > 300 * s) fail("no end in sight");
  if (deadline <= next) {
    for (const auto& link : links) {
      link->sender.tick(now);
      if (link->sender.has_replies()) link->plan_drive(0);
    }
  } else {
    const std::function<void()> event = events_.top().run;
    events_.pop();
    event();
  }
  if (links.size() <= 8 || steps_ % 64 == 0) {
    for (const auto& link : links) link->check();
  }
  check();
  return true;
}

void LinkWorld::run_until(SimTime until_ns) {
  while (step(until_ns)) {
  }
}

void LinkWorld::plan_cuts() {
  for (std::size_t i = 0; i < options.cuts; ++i) {
    at(random.below(20 * ms), [this] {
      SimLink& link = *links[random.below(links.size())];
      if (options.down_ns != 0) down_until = now + random.below(options.down_ns);
      const std::uint64_t which = random.below(3);
      if (which != 0) link.to_target.cut();
      if (which != 1) link.to_origin.cut();
    });
  }
}

std::string LinkWorld::run() {
  plan_cuts();
  const auto all_done = [&] {
    return std::ranges::all_of(links, [](const auto& link) { return link->is_done() || link->program_stops; });
  };
  while (!all_done() && step(LinkSender::never)) {
  }
  if (!all_done()) fail("nothing is due any more, and not all is answered");
  const bool is_whole =
      options.cuts == 0 && std::ranges::none_of(links, [](auto& link) { return link->program_stops; });
  if (is_whole) run_until(LinkSender::never);
  for (const auto& link : links) {
    const bool keeps_much = 2 * link->receiver.held_bytes() > link->receiver.granted_bytes();
    if (is_whole && keeps_much) fail("an idle target keeps replies that its origin has");
  }
  for (const auto& link : links) {
    link->program_stops ? link->sender.give_up(Code::peer_failed) : void(link->sender.close(now));
  }
  run_until(LinkSender::never);
  for (const auto& link : links) {
    link->receiver.close();  // a connection that was cut unnoticed
  }
  run_until(LinkSender::never);
  for (const auto& link : links) {
    if (!link->sender.is_quiet()) fail("the wire still holds memory of a closed sender");
    if (!link->receiver.is_quiet()) fail("the wire still holds memory of a closed receiver");
    if (link->receiver.held_bytes() + link->receiver.early_letter_bytes() != 0) fail("a closed receiver holds memory");
  }
  return failure_;
}

}  // namespace farsum::link
