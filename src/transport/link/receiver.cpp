#include "transport/link/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {
namespace {

constexpr std::size_t most_address_bytes = 4096;
// Less than this is granted once a turn: an acknowledgement is not for nothing (docs/notes/network.md, Credit).
constexpr std::uint64_t least_much_bytes = 1 << 20;

}  // namespace

LinkReceiver::LinkReceiver(const ReceiverOptions& options, Wire& wire, CreditPool& pool)
    : options_(options),
      pool_(pool),
      connection_(options, wire, counters_, true),
      controls_(connection_),
      outbox_(options, connection_, counters_, FrameKind::replies),
      window_(pool.base()) {}

LinkReceiver::~LinkReceiver() { pool_.leave(*this, share_); }

// ---- frames

// Nothing is taken back, and nobody tells what only we could have given.
bool LinkReceiver::tells_the_possible(const FrameHeader& header) const {
  // What has come early has used credit, too.
  const std::uint64_t used = received_charge_ + early_.charge();
  return header.seen <= outbox_.sent_upto() && header.credit <= allowed_ - std::min(allowed_, used);
}

Fault LinkReceiver::on_frame(const Frame& frame, RequestHandler& handler) {
  const bool is_early = frame.header.kind != FrameKind::hello && frame.header.epoch > epoch_;
  Fault fault = judge(frame.header);
  if (fault == Fault::none) fault = obey(frame, handler);
  if (fault == Fault::none) {
    counters_.count_received(frame);
  } else if (fault == Fault::malformed) {
    ++counters_.malformed;
  } else {
    ++(is_early ? counters_.before_hello : counters_.stale);
  }
  return fault;
}

// What can be said of a frame without looking at its payload.
Fault LinkReceiver::judge(const FrameHeader& header) const {
  const bool is_hello = header.kind == FrameKind::hello;
  const bool is_over = (closed_ || dead_) && !is_hello;
  const bool is_old = (header.epoch < epoch_ || is_over) && (is_hello || options_.omission != Omission::epoch_check);
  if (header.from != options_.peer || goes_to_origin(header.kind)) return Fault::malformed;
  if (is_old || (header.epoch > epoch_ && !is_hello)) return Fault::stale;
  return tells_the_possible(header) || dead_ ? Fault::none : Fault::malformed;
}

Fault LinkReceiver::obey(const Frame& frame, RequestHandler& handler) {
  const FrameHeader& header = frame.header;
  if (header.kind == FrameKind::requests) {
    const Fault fault = on_requests(frame, handler);
    if (fault != Fault::none) return fault;
  }
  if (header.kind == FrameKind::letters) {
    const Fault fault = on_letter(frame);
    if (fault != Fault::none) return fault;
  }
  if (header.kind == FrameKind::seen &&
      header.stamp > allowed_ + charge(max_message_bytes(options_), max_reply_bytes(options_))) {
    return Fault::malformed;
  }
  if (header.kind == FrameKind::hello && frame.payload.size() > most_address_bytes) return Fault::malformed;
  if (!dead_) {
    outbox_.acknowledge(header.seen);
    if (header.credit > returned_) {
      const std::uint64_t back = header.credit - returned_;
      returned_ = header.credit;
      recalled_ = false;
      window_ = pool_.base();
      release(back);
    }
    release(outbox_.take_freed_charge());
  }
  if (header.kind == FrameKind::hello) on_hello(frame);
  if (header.kind == FrameKind::seen) on_want(header);
  if (header.kind == FrameKind::ping) controls_.say(FrameKind::pong, 0, header.stamp, told());
  if (header.kind == FrameKind::bye) on_bye();
  return Fault::none;
}

void LinkReceiver::on_bye() {
  drop_all();
  closed_ = true;
  controls_.say(FrameKind::bye_ack, 0, 0, told());
}

// ---- connections back

void LinkReceiver::on_hello(const Frame& frame) {
  hello_stamp_ = frame.header.stamp;
  if (frame.header.epoch == epoch_) {  // its answer was lost, or it came twice
    if (connection_.is_up()) greet();
    return;
  }
  if (epoch_ == 0 && !dead_ && !closed_) {
    pool_.join(*this);
    allowed_ = pool_.base();
  }
  epoch_ = frame.header.epoch;
  address_.assign(frame.payload.begin(), frame.payload.end());
  early_.clear();
  early_letters_.clear();
  recalled_ = false;
  connection_.close();
  if (!connection_.is_there()) connect();
}

void LinkReceiver::connect() {
  if (shut_) return;
  connection_.open(epoch_, address_);
  controls_.start();
  outbox_.start();
  greet();
}

void LinkReceiver::greet() {
  if (dead_ || closed_) {
    controls_.say(FrameKind::refused, 0, hello_stamp_, told());
    return;
  }
  controls_.say(FrameKind::hello_ack, 0, hello_stamp_, told());
  connection_.let_data_go();
  note_told();
}

void LinkReceiver::on_sent(FrameId id, bool ok) {
  ControlFrames::is_control(id) ? controls_.on_sent(id) : outbox_.on_sent(id);
  release(outbox_.take_freed_charge());
  if (!ok) connection_.close();
  if ((closed_ || dead_) && outbox_.is_quiet() && controls_.is_quiet()) connection_.close();
  pump();
}

void LinkReceiver::on_broken(std::uint32_t epoch) {
  if (epoch == connection_.epoch()) connection_.close();
}

void LinkReceiver::on_disconnected(std::uint32_t epoch) {
  if (connection_.on_disconnected(epoch) && epoch_ > connection_.epoch()) connect();
}

void LinkReceiver::forget_peer() {
  if (dead_) return;
  drop_all();
  dead_ = true;
  connection_.close();  // where it lives after all it comes again, and is told
}

void LinkReceiver::close() {
  drop_all();
  shut_ = true;
  connection_.close();
}

void LinkReceiver::drop_all() {
  early_.clear();
  early_letters_.clear();
  parked_.clear();
  later_.clear();
  completed_.clear();
  outbox_.drop_all();
  outbox_.take_freed_charge();
  wanted_ = 0;
  pool_.leave(*this, share_);
  released_ = allowed_;
}

// ---- requests

// Whether there is credit for a frame of that cost, which says that so much came back unused.
bool LinkReceiver::has_credit_for(std::uint64_t cost, std::uint64_t returned) const {
  const std::uint64_t gone = received_charge_ + early_.charge() + std::max(returned_, returned);
  return cost <= allowed_ && gone <= allowed_ - cost;
}

// The charges of the records that have not come before; nothing where the frame is no frame of requests.
std::optional<std::uint64_t> LinkReceiver::charge_of_new(const Frame& frame) const {
  if (frame.header.records == 0 || frame.payload.size() + sizeof(FrameHeader) > options_.max_frame_bytes) return {};
  if (!holds_whole_records(frame)) return {};
  std::uint64_t sum = 0;
  std::span<const std::byte> rest = frame.payload, message;
  RequestRecord record;
  for (std::uint64_t ticket = frame.header.first; next_record(rest, record, message); ++ticket) {
    if (record.reply_capacity > max_reply_bytes(options_)) return {};
    if (ticket >= next_ticket_) sum += charge(record.bytes, record.reply_capacity);
  }
  return sum;
}

Fault LinkReceiver::on_requests(const Frame& frame, RequestHandler& handler) {
  if (early_.has(frame.header.first)) {
    ++counters_.doubles;
    return Fault::none;
  }
  const std::optional<std::uint64_t> cost = charge_of_new(frame);
  if (!cost || !has_credit_for(*cost, frame.header.credit)) return Fault::malformed;
  recalled_ = false;
  if (frame.header.first > next_ticket_) {
    early_.add(frame, *cost);
    return Fault::none;
  }
  accept(frame, handler);
  while (const std::optional<EarlyFrames::Early> early = early_.take(next_ticket_)) accept(early->frame(), handler);
  return Fault::none;
}

void LinkReceiver::accept(const Frame& frame, RequestHandler& handler) {
  std::span<const std::byte> rest = frame.payload, message;
  RequestRecord record;
  for (std::uint64_t ticket = frame.header.first; next_record(rest, record, message); ++ticket) {
    if (ticket < next_ticket_) {
      ++counters_.doubles;
      if (options_.omission != Omission::doubles_check) continue;
    } else {
      received_charge_ += charge(record.bytes, record.reply_capacity);
      ++next_ticket_;
    }
    accept_record(ticket, record, message, handler);
  }
}

void LinkReceiver::accept_record(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                                 RequestHandler& handler) {
  const bool may_wait = (record.flags & may_wait_flag) != 0;
  if (!parked_.empty() || may_wait) {
    Parked parked = park(ticket, record, message);
    if (!parked_.empty() || !serve(parked, handler)) parked_.push_back(std::move(parked));
    return;
  }
  const InPlace answer = serve_in_place(ticket, record, message, handler);
  if (answer.served.kind != Served::Kind::done) {
    Parked parked = park(ticket, record, message);
    keep_room(parked, answer);
    if (answer.served.kind == Served::Kind::again) {
      parked_.push_back(std::move(parked));
    } else {
      defer(std::move(parked));
    }
  }
  finish_completed();
}

// Asks the handler, and replies where the request is done.
Served LinkReceiver::ask(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                         std::span<std::byte> room, RequestHandler& handler) {
  serving_ = true;
  const Served served = handler.on_request(options_.peer, message, room, {options_.peer, ticket});
  serving_ = false;
  if (served.kind == Served::Kind::done) {
    reply(ticket, record, served.code, room.first(std::min<std::size_t>(served.reply_bytes, room.size())));
  }
  return served;
}

// The common case: the message is read where it lies, its reply is written where it leaves from.
LinkReceiver::InPlace LinkReceiver::serve_in_place(std::uint64_t ticket, const RequestRecord& record,
                                                   std::span<const std::byte> message, RequestHandler& handler) {
  const std::span<std::byte> room =
      outbox_.reserve(sizeof(ReplyEntry) + record.reply_capacity).subspan(sizeof(ReplyEntry));
  // A frame that is full travels while the next one is made; that one, where the room lies, stays until the turn ends.
  if (outbox_.holds_full()) {
    outbox_.hold();
    pump();
  }
  return {ask(ticket, record, message, room, handler), room};
}

// Keeps the answer of what is not done and was written to: it gets room of its own, before other replies are written to
// the frame's.
void LinkReceiver::keep_room(Parked& parked, const InPlace& answer) {
  const Served& served = answer.served;
  const bool is_untouched = served.kind == Served::Kind::again && served.is_untouched;
  if (served.kind == Served::Kind::done || is_untouched) return;
  parked.reply = std::make_unique_for_overwrite<std::byte[]>(answer.room.size());
  std::copy(answer.room.begin(), answer.room.end(), parked.reply.get());
}

// False: `again`. One that nobody has looked at yet needs no room of its own, unless it stays where it is.
bool LinkReceiver::serve(Parked& parked, RequestHandler& handler) {
  if (parked.may_wait() && parked.reply == nullptr) parked.make_room();
  Served served;
  if (parked.reply != nullptr) {
    served = ask(parked.ticket, parked.record, parked.message(), parked.room(), handler);
  } else {
    const InPlace answer = serve_in_place(parked.ticket, parked.record, parked.message(), handler);
    keep_room(parked, answer);
    served = answer.served;
  }
  if (served.kind == Served::Kind::later) defer(std::move(parked));
  finish_completed();
  return served.kind != Served::Kind::again;
}

std::size_t LinkReceiver::serve_parked(RequestHandler& handler, std::size_t budget) {
  std::size_t finished = 0;
  while (!parked_.empty() && finished < budget && serve(parked_.front(), handler)) {
    parked_.pop_front();
    ++finished;
  }
  return finished;
}

LinkReceiver::Parked LinkReceiver::park(std::uint64_t ticket, const RequestRecord& record,
                                        std::span<const std::byte> message) {
  Parked parked;
  parked.ticket = ticket;
  parked.record = record;
  parked.bytes = std::make_unique_for_overwrite<std::byte[]>(record.bytes);
  std::copy(message.begin(), message.end(), parked.bytes.get());
  return parked;
}

void LinkReceiver::defer(Parked parked) {
  const std::uint64_t ticket = parked.ticket;
  later_.insert_or_assign(ticket, std::move(parked));
}

// ---- letters

// A letter comes before its turn only where the connection turns frames round, and a sender has no more than a window
// of them.
Fault LinkReceiver::on_letter(const Frame& frame) {
  const std::uint64_t number = frame.header.first;
  if (options_.letters == nullptr || frame.payload.size() > max_letter_bytes || frame.header.stamp > 1 ||
      (number > next_letter_ && number - next_letter_ >= letters_in_window)) {
    return Fault::malformed;
  }
  if (number > next_letter_ && options_.omission != Omission::letter_order) {
    if (!early_letters_.has(number)) early_letters_.add(frame, 0);
    return Fault::none;
  }
  hand_over(frame);
  while (const std::optional<EarlyFrames::Early> early = early_letters_.take(next_letter_)) {
    hand_over(early->frame());
  }
  return Fault::none;
}

void LinkReceiver::hand_over(const Frame& frame) {
  const std::uint64_t number = frame.header.first;
  // Of one that came before, too: the answer may have been lost.
  if (frame.header.stamp == 1) is_asked_for_letters_ = true;
  if (number < next_letter_) {
    ++counters_.doubles;
    if (options_.omission != Omission::letter_doubles_check) return;
  }
  next_letter_ = std::max(next_letter_, number + 1);
  options_.letters->on_letter(options_.peer, frame.payload);
}

// ---- replies

void LinkReceiver::complete(std::uint64_t ticket, Code code, std::span<const std::byte> data) {
  const auto found = later_.find(ticket);
  if (found == later_.end() || found->second.completed) return;
  Parked& parked = found->second;
  const bool fits = data.size() <= parked.room().size();
  parked.completed = true;
  parked.code = fits ? code : Code::system;
  parked.reply_bytes = fits ? static_cast<std::uint32_t>(data.size()) : 0;
  std::copy_n(data.begin(), parked.reply_bytes, parked.room().begin());
  completed_.push_back(ticket);
  if (!serving_) finish_completed();
}

// Replies to what was completed, also by a handler while it was writing its own reply.
void LinkReceiver::finish_completed() {
  for (const std::uint64_t ticket : completed_) {
    const Parked parked = std::move(later_.extract(ticket).mapped());
    reply(ticket, parked.record, parked.code, parked.room().first(parked.reply_bytes));
  }
  completed_.clear();
}

// Whether the request is ok and without data as all of the entry gathered last, which ends just before it.
bool LinkReceiver::joins_last_entry(std::uint64_t ticket) {
  const std::span<std::byte> last = outbox_.last_record();
  if (last.size() != sizeof(ReplyEntry)) return false;
  ReplyEntry entry;
  std::memcpy(&entry, last.data(), sizeof entry);
  if (entry.code != 0 || entry.ticket + entry.count != ticket || entry.count == ~std::uint32_t{0}) return false;
  ++entry.count;
  std::memcpy(last.data(), &entry, sizeof entry);
  return true;
}

void LinkReceiver::reply(std::uint64_t ticket, const RequestRecord& record, Code code,
                         std::span<const std::byte> data) {
  outbox_.hold();
  const std::uint64_t cost = charge(record.bytes, record.reply_capacity);
  if (code == Code::ok && data.empty() && joins_last_entry(ticket)) return release(cost);
  const ReplyEntry entry{ticket, 1, static_cast<std::uint32_t>(code), static_cast<std::uint32_t>(data.size()), 0};
  std::byte* const at = outbox_.reserve(sizeof entry + data.size()).data();
  if (!data.empty() && at + sizeof entry != data.data()) std::memmove(at + sizeof entry, data.data(), data.size());
  std::memcpy(at, &entry, sizeof entry);
  // The rest of the charge comes back when the origin has taken the reply.
  std::uint64_t kept = sizeof entry + data.size() + (outbox_.gathers_first_record() ? sizeof(FrameHeader) : 0);
  if (options_.omission == Omission::hold_credit_of_replies) kept = 0;
  outbox_.commit(sizeof entry + data.size(), kept);
  release(cost - kept);
}

// ---- credit

void LinkReceiver::release(std::uint64_t bytes) {
  if (dead_ || closed_ || shut_) return;  // all of it went back at once
  released_ += bytes;
  pool_.give_back(share_, std::min(bytes, share_.grown + share_.turn));
}

void LinkReceiver::on_want(const FrameHeader& header) {
  // It counts what it is allowed already, too: it may not have been told.
  wanted_ = std::max(wanted_, header.stamp);
  if (header.stamp <= allowed_) return;
  if (header.first == 1) wanted_at_any_price_ = true;
  window_ = std::min(std::max(2 * window_, wanted_ - released_), options_.most_window);
}

// Tops the window up, to its base only while others wait. Who waits gets all that it needs or nothing: with a part of
// it it could do no more than ask again.
void LinkReceiver::renew(bool is_next) {
  const std::uint64_t before = allowed_;
  const std::uint64_t out = allowed_ - released_;
  const std::uint64_t goal = pool_.has_waiters() && !is_next ? pool_.base() : window_;
  if (goal > out) {
    const std::uint64_t base_left = pool_.base() - (out - share_.grown - share_.turn);
    const std::uint64_t of_base = std::min(goal - out, base_left);
    allowed_ += of_base;
    const std::uint64_t more = pool_.can_grow(share_, goal - out - of_base);
    if (wanted_ <= allowed_ + more) allowed_ += pool_.grow(share_, more);
  }
  if (is_next && wanted_at_any_price_ && wanted_ > allowed_ && pool_.take_turn(*this, share_, wanted_ - allowed_)) {
    allowed_ = wanted_;
  }
  if (wanted_ <= allowed_) wanted_at_any_price_ = false;
  // A recall that found nothing to return is never answered; what is granted now can be recalled anew.
  if (allowed_ != before) recalled_ = false;
}

bool LinkReceiver::take_credit() {
  renew(true);
  send_turn();
  return wanted_ <= allowed_;
}

bool LinkReceiver::return_idle_credit() {
  const std::uint64_t unspent = allowed_ - received_charge_ - returned_;
  const bool is_used = unspent <= pool_.base() && !outbox_.holds_frames();
  if (is_used || recalled_ || !connection_.is_up()) return false;
  recalled_ = true;
  controls_.say(FrameKind::recall, 0, pool_.base(), told());
  return true;
}

std::uint64_t LinkReceiver::granted_bytes() const { return allowed_ - released_; }

std::uint64_t LinkReceiver::held_bytes() const {
  std::uint64_t sum = early_.bytes() + outbox_.held_bytes();
  for (std::uint64_t at = parked_.begin(); at != parked_.end(); ++at) sum += parked_[at].size();
  for (const auto& [ticket, parked] : later_) sum += parked.size();
  return sum;
}

// ---- the end of a turn

void LinkReceiver::pump() {
  const bool controls_left = controls_.pump(told());
  if (outbox_.pump(told()) || controls_left) note_told();
}

// A frame has just told what was received and is allowed.
void LinkReceiver::note_told() {
  told_received_ = next_ticket_;
  told_allowed_ = allowed_;
  is_asked_for_letters_ = false;
}

void LinkReceiver::end_turn() {
  if (closed_ || dead_ || shut_ || epoch_ == 0) return;
  renew(false);
  if (wanted_ > allowed_) pool_.wait(*this, share_);
  send_turn();
}

bool LinkReceiver::has_much_to_grant() const {
  const std::uint64_t out = allowed_ - released_;
  if (window_ <= out || pool_.has_waiters()) return false;
  return pool_.can_grow(share_, window_ - out) >= std::max(window_ / 2, least_much_bytes);
}

void LinkReceiver::send_turn() {
  outbox_.let_go();
  pump();
  const bool ends_wait = wanted_ > told_allowed_ && wanted_ <= allowed_;
  const bool is_worth_telling = ends_wait || allowed_ - told_allowed_ >= window_ / 4;
  if (told_received_ == next_ticket_ && !is_worth_telling && !is_asked_for_letters_) return;
  if (controls_.say(FrameKind::replies, 0, 0, told())) note_told();
}

}  // namespace farsum::link
