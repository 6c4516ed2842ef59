#include "transport/link/sender.hpp"

#include <algorithm>
#include <cstring>

namespace farsum::link {
namespace {

// The request as a record of the frame that is gathered.
OpenRequests::Request gather(Outbox& outbox, const Post& post, std::uint64_t cost) {
  const std::size_t borrowed = post.borrow_body ? post.body.size() : 0;
  const RequestRecord record{static_cast<std::uint32_t>(post.head.size() + post.body.size()),
                             static_cast<std::uint32_t>(post.reply_capacity), post.may_wait ? may_wait_flag : 0, 0};
  const std::size_t copied = sizeof record + post.head.size() + post.body.size() - borrowed;
  std::byte* const at = outbox.reserve(copied, borrowed).data();
  std::memcpy(at, &record, sizeof record);
  if (!post.head.empty()) std::memcpy(at + sizeof record, post.head.data(), post.head.size());
  if (borrowed == 0 && !post.body.empty()) {
    std::memcpy(at + sizeof record + post.head.size(), post.body.data(), post.body.size());
  }
  OpenRequests::Request request;
  request.frame = outbox.commit(copied, 0);
  if (borrowed != 0) outbox.append_borrowed(post.body);
  request.charge = cost;
  request.reply_capacity = record.reply_capacity;
  request.may_wait = post.may_wait;
  request.borrowed = borrowed != 0;
  request.reply_into = post.reply_into;
  return request;
}

}  // namespace

LinkSender::LinkSender(const SenderOptions& options, Wire& wire)
    : options_(options),
      connection_(options, wire, counters_, false),
      controls_(connection_),
      outbox_(options, connection_, counters_, FrameKind::requests),
      letters_(options, connection_, counters_),
      replies_(options, requests_, outbox_, counters_),
      credit_(options.hold_credit_ns),
      report_(credit_, replies_, controls_, letters_, outbox_),
      dues_(requests_, outbox_, letters_, credit_),
      times_(options) {}

// ---- posting

bool LinkSender::has_credit(const Post& post, std::uint64_t cost) const {
  if (!credit_.covers(cost)) return false;
  if (!post.may_wait || options_.omission == Omission::may_wait_share) return true;
  // What may wait must leave room for what releases it, and must not spend what was granted for that.
  return !credit_.is_wanted_at_any_price() && requests_.may_wait_charge() + cost <= options_.may_wait_bytes;
}

std::optional<std::uint64_t> LinkSender::post(const Post& post, std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) {
    replies_.make_room();
    const std::uint64_t ticket = requests_.add({.answered = true});
    replies_.answer(ticket, failure_);
    return ticket;
  }
  const std::uint64_t cost = charge(post.head.size() + post.body.size(), post.reply_capacity);
  if (!has_credit(post, cost)) {
    ask_for_credit(cost, post.may_wait, now_ns);
    return std::nullopt;
  }
  const bool joins_unheld = outbox_.gathered_records() != 0 && !outbox_.holds_back();
  requests_.make_room();  // behind the commit of its record nothing may fail
  const std::uint64_t ticket = requests_.add(gather(outbox_, post, cost));
  credit_.spend(cost, post.may_wait);
  if (!post.may_hold) {
    outbox_.let_go();
  } else if (!joins_unheld) {
    outbox_.hold();
  }
  go_on(now_ns);
  return ticket;
}

bool LinkSender::post_letter(std::span<const std::byte> head, std::span<const std::byte> body, std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) return true;
  if (!letters_.post(head, body)) return false;
  go_on(now_ns);
  return true;
}

// What was posted is the link's: it cannot be taken back any more. Of what is held, frames that are full leave.
void LinkSender::go_on(std::uint64_t now_ns) noexcept {
  note_need(now_ns);
  if (state_ == LinkState::idle) start_connecting(now_ns);
  report_.pump();
}

void LinkSender::ask_for_credit(std::uint64_t cost, bool may_wait, std::uint64_t now_ns) {
  // What is held would keep the credit that is waited for.
  flush(now_ns);
  credit_.want(cost, may_wait);
  note_need(now_ns);
  if (state_ == LinkState::idle) return start_connecting(now_ns);
  if (state_ == LinkState::open) report_.ask_for_credit();
}

void LinkSender::flush(std::uint64_t now_ns) {
  outbox_.let_go();
  note_need(now_ns);
  // The connection may have broken meanwhile, which nobody needed.
  if (state_ == LinkState::idle && dues_.needs_link(state_)) start_connecting(now_ns);
  report_.pump();
}

void LinkSender::open(std::uint64_t now_ns) {
  if (state_ == LinkState::idle) start_connecting(now_ns);
}

// ---- connections and time

void LinkSender::note_need(std::uint64_t now_ns) {
  times_.note_need(dues_.needs_link(state_), dues_.is_receipts_only(state_), now_ns);
}

void LinkSender::start_connecting(std::uint64_t now_ns) {
  if (connection_.is_there()) {  // the old connection is still being closed
    state_ = LinkState::broken;
    times_.retry_at(now_ns);
    return;
  }
  state_ = LinkState::connecting;
  credit_.forget_question();
  replies_.forget_early();
  note_need(now_ns);
  times_.on_connecting(now_ns);
  connection_.open(connection_.epoch() + 1, {});
  controls_.start();
  outbox_.start();
  letters_.start();
  report_.say(FrameKind::hello, ++nonce_, options_.address);
}

void LinkSender::break_link(std::uint64_t now_ns) {
  if (state_ == LinkState::closing) {
    state_ = LinkState::closed;
  } else if (state_ != LinkState::closed && state_ != LinkState::failed) {
    state_ = LinkState::idle;
    if (dues_.needs_link(state_)) state_ = LinkState::broken;
    times_.on_broken(now_ns);
  }
  connection_.close();
  note_need(now_ns);
}

void LinkSender::on_sent(FrameId id, bool ok, std::uint64_t now_ns) {
  if (ControlFrames::is_control(id)) {
    controls_.on_sent(id);
  } else {
    LetterBox::is_letter(id) ? letters_.on_sent(id) : outbox_.on_sent(id);
  }
  if (!ok) on_broken(connection_.epoch(), now_ns);
  note_need(now_ns);
  report_.pump();
}

// The wire says so, as it does of a process that is gone, and not of one that is stopped.
void LinkSender::on_broken(std::uint32_t epoch, std::uint64_t now_ns) {
  if (epoch != connection_.epoch() || !connection_.is_up()) return;
  times_.on_cut_off();
  break_link(now_ns);
}

void LinkSender::on_disconnected(std::uint32_t epoch, std::uint64_t now_ns) {
  if (connection_.on_disconnected(epoch)) tick(now_ns);
}

std::uint64_t LinkSender::next_deadline_ns() const {
  if (state_ >= LinkState::closed) return never;
  const std::uint64_t of_link = times_.is_needed() ? times_.deadline_ns(state_, connection_.is_there()) : never;
  return std::min(credit_.give_back_at_ns(), of_link);
}

void LinkSender::tick(std::uint64_t now_ns) {
  if (state_ >= LinkState::closed) return;
  if (now_ns >= credit_.give_back_at_ns()) {
    credit_.forget_want();
    credit_.give_back();
    report_.tell_seen();
    note_need(now_ns);
  }
  if (!times_.is_needed()) return;
  if (times_.lapse(now_ns)) note_need(now_ns);
  const bool has_asked_nothing = state_ == LinkState::open && dues_.is_receipts_only(state_) && !times_.awaits_pong();
  if (has_asked_nothing && now_ns >= times_.deadline_ns(state_, true)) return ask_for_received(now_ns);
  if (times_.is_silent(now_ns)) {
    if (times_.does_silence_count()) return fail(LinkEnd::silence, Code::peer_failed);
    times_.count_anew(now_ns);
  }
  if (state_ == LinkState::broken) {
    if (!connection_.is_there() && times_.may_retry(now_ns)) start_connecting(now_ns);
    return;
  }
  if (times_.is_stuck(now_ns)) return break_link(now_ns);
  if (state_ == LinkState::open && times_.is_ping_due(now_ns)) ping(now_ns);
}

void LinkSender::expect_receipts(std::uint64_t now_ns) {
  if (!dues_.is_receipts_only(state_)) return;
  const bool is_new = times_.expect_receipts(now_ns);
  if (state_ == LinkState::open && (is_new || !times_.awaits_pong()))
    ask_for_received(now_ns);
  else if (is_new)
    times_.count_anew(now_ns);
  note_need(now_ns);
}

// The silence counts from the question, however late that is.
void LinkSender::ask_for_received(std::uint64_t now_ns) {
  times_.count_anew(now_ns);
  ping(now_ns);
}

void LinkSender::ping(std::uint64_t now_ns) {
  times_.on_asked(now_ns);
  report_.say(FrameKind::ping, ++nonce_);
}

bool LinkSender::close(std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) return true;
  if (dues_.has_unanswered()) return false;
  if (!letters_.is_empty()) {
    if (dues_.is_receipts_only(state_))
      expect_receipts(now_ns);
    else if (state_ == LinkState::open && !times_.awaits_pong())
      ask_for_received(now_ns);
    return false;
  }
  credit_.forget_want();
  if (state_ == LinkState::open) {
    state_ = LinkState::closing;
    report_.say(FrameKind::bye, 0);
  } else {
    state_ = LinkState::closed;
    connection_.close();
  }
  note_need(now_ns);
  return true;
}

void LinkSender::give_up(Code code) { fail(LinkEnd::given_up, code); }

void LinkSender::fail(LinkEnd end, Code code) {
  if (state_ == LinkState::failed) return;
  replies_.make_room(requests_.unanswered());  // before anything is done
  state_ = LinkState::failed;
  end_ = end;
  failure_ = code;
  credit_.forget_want();
  times_.forget_need();
  replies_.answer_all(code);
  connection_.close();
  outbox_.drop_all();
  letters_.drop_all();
  replies_.forget_early();
}

// ---- what the target says

Fault LinkSender::on_frame(const Frame& frame, std::uint64_t now_ns) {
  Fault fault = judge(frame.header);
  if (fault == Fault::none) fault = obey(frame, now_ns);
  if (fault == Fault::none) {
    counters_.count_received(frame);
  } else {
    ++(fault == Fault::stale ? counters_.stale : counters_.malformed);
  }
  return fault;
}

// What can be said of a frame without looking at its payload.
Fault LinkSender::judge(const FrameHeader& header) const {
  const bool is_current = header.epoch == connection_.epoch() && connection_.is_up();
  const bool counts = is_current || options_.omission == Omission::epoch_check;
  if (header.from != options_.peer || !goes_to_origin(header.kind)) return Fault::malformed;
  if (!counts || state_ >= LinkState::closed) return Fault::stale;
  const bool tells_the_possible = header.seen <= outbox_.sent_upto() &&
                                  received_letters(header) <= letters_.sent_upto() &&
                                  credit_.can_be_allowed(header.credit);
  return tells_the_possible ? Fault::none : Fault::malformed;
}

Fault LinkSender::obey(const Frame& frame, std::uint64_t now_ns) {
  const FrameHeader& header = frame.header;
  if (header.kind == FrameKind::hello_ack && header.stamp != nonce_ && state_ == LinkState::connecting) {
    return Fault::malformed;
  }
  if (header.kind == FrameKind::replies) {
    const Fault fault = replies_.on_replies(frame);
    if (fault != Fault::none) return fault;
  }
  times_.on_heard(now_ns);
  credit_.allow(header.credit);
  outbox_.acknowledge(header.seen);
  letters_.acknowledge(received_letters(header));
  if (header.kind == FrameKind::hello_ack && state_ == LinkState::connecting) on_hello_ack();
  if (header.kind == FrameKind::pong) times_.on_answered();
  if (header.kind == FrameKind::recall) {
    if (credit_.on_recall(header.stamp, now_ns)) credit_.give_back();
    // Until the next request the target also learns at once which replies it need not keep.
    report_.tell_seen();
  }
  if (header.kind == FrameKind::refused) fail(LinkEnd::refused, Code::peer_failed);
  if (header.kind == FrameKind::bye_ack && state_ == LinkState::closing) {
    state_ = LinkState::closed;
    connection_.close();
  }
  if (state_ == LinkState::open) report_.tell_seen_if_much();
  note_need(now_ns);
  report_.pump();
  return Fault::none;
}

void LinkSender::on_hello_ack() {
  state_ = LinkState::open;
  times_.on_open();
  connection_.let_data_go();
  report_.ask_for_credit();
}

}  // namespace farsum::link
