#include "transport/link/sender.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {
namespace {

// No honest target allows more than this beyond what was spent.
constexpr std::uint64_t most_credit = std::uint64_t{1} << 40;

// A thread that waits for other ranks says so again before this is over, however long it sleeps.
constexpr std::uint64_t longest_between_looks_ns = 2'000'000'000;

}  // namespace

LinkSender::LinkSender(const SenderOptions& options, Wire& wire)
    : options_(options),
      connection_(options, wire, counters_, false),
      controls_(connection_),
      outbox_(options, connection_, counters_, FrameKind::requests),
      letters_(options, connection_, counters_),
      backoff_ns_(options.backoff_least_ns) {}

// ---- posting

bool LinkSender::has_credit(const Post& post, std::uint64_t cost) const {
  if (charged_ + returned_ + cost > allowed_) return false;
  if (!post.may_wait || options_.omission == Omission::may_wait_share) return true;
  // What may wait must leave room for what releases it, and must not spend what was granted for that.
  return !wanted_at_any_price_ && may_wait_charge_ + cost <= options_.may_wait_bytes;
}

std::optional<std::uint64_t> LinkSender::post(const Post& post, std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) return answer_at_once();
  const std::uint64_t cost = charge(post.head.size() + post.body.size(), post.reply_capacity);
  if (!has_credit(post, cost)) {
    ask_for_credit(cost, post.may_wait, now_ns);
    return std::nullopt;
  }
  const bool joins_unheld = outbox_.gathered_records() != 0 && !outbox_.holds_back();
  append(post, cost);
  send_appended(post, joins_unheld, now_ns);
  return requests_.end() - 1;
}

// The request is the link's: it cannot be taken back any more.
void LinkSender::send_appended(const Post& post, bool joins_unheld, std::uint64_t now_ns) noexcept {
  is_recalled_ = false;
  give_back_at_ns_ = never;
  if (!post.may_hold) {
    outbox_.let_go();
  } else if (!joins_unheld) {
    outbox_.hold();
  }
  if (!post.may_wait || !wanted_at_any_price_) forget_want();
  note_need(now_ns);
  if (state_ == LinkState::idle) start_connecting(now_ns);
  pump();  // of what is held, frames that are full
}

bool LinkSender::post_letter(std::span<const std::byte> head, std::span<const std::byte> body, std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) return true;
  if (letters_.is_full()) {
    is_letter_refused_ = true;
    return false;
  }
  letters_.append(head, body);
  is_letter_refused_ = false;
  send_letters(now_ns);
  return true;
}

// The letter is the link's: it cannot be taken back any more.
void LinkSender::send_letters(std::uint64_t now_ns) noexcept {
  note_need(now_ns);
  if (state_ == LinkState::idle) start_connecting(now_ns);
  pump();
}

void LinkSender::append(const Post& post, std::uint64_t cost) {
  const std::size_t borrowed = post.borrow_body ? post.body.size() : 0;
  const RequestRecord record{static_cast<std::uint32_t>(post.head.size() + post.body.size()),
                             static_cast<std::uint32_t>(post.reply_capacity), post.may_wait ? may_wait_flag : 0, 0};
  const std::size_t copied = sizeof record + post.head.size() + post.body.size() - borrowed;
  requests_.make_room();  // behind the commit nothing may fail
  std::byte* const at = outbox_.reserve(copied, borrowed).data();
  std::memcpy(at, &record, sizeof record);
  if (!post.head.empty()) std::memcpy(at + sizeof record, post.head.data(), post.head.size());
  if (borrowed == 0 && !post.body.empty()) {
    std::memcpy(at + sizeof record + post.head.size(), post.body.data(), post.body.size());
  }
  Request request;
  request.frame = outbox_.commit(copied, 0);
  if (borrowed != 0) outbox_.append_borrowed(post.body);
  request.charge = cost;
  request.reply_capacity = record.reply_capacity;
  request.may_wait = post.may_wait;
  request.borrowed = borrowed != 0;
  request.reply_into = post.reply_into;
  requests_.push_back(request);
  ++unanswered_;
  charged_ += cost;
  reply_room_ += reply_charge(post.reply_capacity);
  if (post.may_wait) may_wait_charge_ += cost;
}

std::uint64_t LinkSender::answer_at_once() {
  inbox_.make_room();
  Request request;
  request.answered = true;
  requests_.push_back(request);
  const std::uint64_t ticket = requests_.end() - 1;
  Reply reply;
  reply.ticket = ticket;
  reply.code = failure_;
  inbox_.push_back(std::move(reply));
  return ticket;
}

void LinkSender::ask_for_credit(std::uint64_t cost, bool may_wait, std::uint64_t now_ns) {
  // What is held would keep the credit that is waited for.
  flush(now_ns);
  const std::uint64_t needed = charged_ + returned_ + cost;
  if (needed > allowed_) {
    wanted_ = std::max(wanted_, needed);
    if (!may_wait) wanted_at_any_price_ = true;
  }
  note_need(now_ns);
  if (state_ == LinkState::idle) return start_connecting(now_ns);
  tell_want();
}

// Asks once for each amount of credit, as more of it may already be on its way, and again where more is wanted than was
// asked for, or at any price: what was asked for may never be granted while others want theirs.
void LinkSender::tell_want() {
  if (state_ != LinkState::open || wanted_ <= allowed_) return;
  const bool is_known = wanted_ <= asked_for_ && (asked_at_any_price_ || !wanted_at_any_price_);
  if (asked_at_ == allowed_ + 1 && is_known) return;
  tell_seen();
}

void LinkSender::flush(std::uint64_t now_ns) {
  outbox_.let_go();
  note_need(now_ns);
  // The connection may have broken meanwhile, which nobody needed.
  if (state_ == LinkState::idle && needs_link()) start_connecting(now_ns);
  pump();
}

void LinkSender::open(std::uint64_t now_ns) {
  if (state_ == LinkState::idle) start_connecting(now_ns);
}

// ---- connections and time

bool LinkSender::holds_all_requests_back() const {
  return outbox_.holds_back() && outbox_.frames_out() == 0 && unanswered_ == outbox_.gathered_records();
}

bool LinkSender::owes_requests() const {
  return (unanswered_ != 0 || outbox_.holds_frames()) && !holds_all_requests_back();
}

bool LinkSender::needs_link() const {
  return owes_requests() || !letters_.is_empty() || wanted_ > allowed_ || state_ == LinkState::connecting ||
         state_ == LinkState::closing;
}

// There are letters only, most of which nobody answers: that the peer is silent says nothing of it until it is asked.
bool LinkSender::is_owed_receipts_only() const {
  return !letters_.is_empty() && !owes_requests() && wanted_ <= allowed_ && state_ < LinkState::closing;
}

// The silence counts from when it first matters.
void LinkSender::note_need(std::uint64_t now_ns) {
  const bool is_needed = needs_link();
  const bool counts = is_needed && (!is_owed_receipts_only() || receipts_expected_until_ns_ != 0 || is_cut_off_);
  const bool has_counted = std::exchange(does_silence_count_, counts);
  if (!is_needed) {
    needed_since_ns_ = never;
  } else if (needed_since_ns_ == never || (counts && !has_counted)) {
    needed_since_ns_ = now_ns;
  }
}

void LinkSender::start_connecting(std::uint64_t now_ns) {
  if (connection_.is_there()) {  // the old connection is still being closed
    state_ = LinkState::broken;
    retry_ns_ = now_ns;
    return;
  }
  state_ = LinkState::connecting;
  give_back_at_ns_ = never;
  connected_ns_ = now_ns;
  asked_at_ = 0;
  early_.clear();
  note_need(now_ns);
  awaits_pong_ = false;
  connection_.open(connection_.epoch() + 1, {});
  controls_.start();
  outbox_.start();
  letters_.start();
  controls_.say(FrameKind::hello, 0, ++nonce_, told(), options_.address);
}

void LinkSender::break_link(std::uint64_t now_ns) {
  if (state_ == LinkState::closing) {
    state_ = LinkState::closed;
  } else if (state_ != LinkState::closed && state_ != LinkState::failed) {
    state_ = LinkState::idle;
    if (needs_link()) state_ = LinkState::broken;
    retry_ns_ = now_ns + backoff_ns_;
    backoff_ns_ = std::min(2 * backoff_ns_, options_.backoff_most_ns);
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
  if (!ok && connection_.is_up()) be_cut_off(now_ns);
  note_need(now_ns);
  pump();
}

void LinkSender::on_broken(std::uint32_t epoch, std::uint64_t now_ns) {
  if (epoch == connection_.epoch() && connection_.is_up()) be_cut_off(now_ns);
}

// The wire says so, as it does of a process that is gone, and not of one that is stopped.
void LinkSender::be_cut_off(std::uint64_t now_ns) {
  is_cut_off_ = true;
  break_link(now_ns);
}

void LinkSender::on_disconnected(std::uint32_t epoch, std::uint64_t now_ns) {
  if (connection_.on_disconnected(epoch)) tick(now_ns);
}

std::uint64_t LinkSender::quiet_since_ns() const { return std::max(last_heard_ns_, needed_since_ns_); }

std::uint64_t LinkSender::next_deadline_ns() const {
  if (state_ >= LinkState::closed) return never;
  return std::min(give_back_at_ns_, needed_since_ns_ == never ? never : link_deadline_ns());
}

std::uint64_t LinkSender::link_deadline_ns() const {
  std::uint64_t next = options_.timeout_ns == 0 ? never : quiet_since_ns() + options_.timeout_ns;
  if (state_ == LinkState::broken) return connection_.is_there() ? next : std::min(next, retry_ns_);
  next = std::min(next, std::max(quiet_since_ns(), connected_ns_) + options_.reconnect_after_ns);
  if (state_ == LinkState::open)
    next = std::min(next, std::max(quiet_since_ns(), last_ping_ns_) + options_.ping_after_ns);
  return next;
}

void LinkSender::tick(std::uint64_t now_ns) {
  if (now_ns >= give_back_at_ns_ && state_ < LinkState::closed) {
    forget_want();
    give_credit_back();
    note_need(now_ns);
  }
  if (state_ >= LinkState::closed || needed_since_ns_ == never) return;
  if (now_ns >= receipts_expected_until_ns_) {
    receipts_expected_until_ns_ = 0;
    note_need(now_ns);
  }
  if (has_asked_nothing() && now_ns >= link_deadline_ns()) return ask_for_received(now_ns);
  if (options_.timeout_ns != 0 && now_ns >= quiet_since_ns() + options_.timeout_ns) {
    if (does_silence_count_) return fail(LinkEnd::silence, Code::peer_failed);
    needed_since_ns_ = now_ns;
  }
  if (state_ == LinkState::broken) {
    if (!connection_.is_there() && now_ns >= retry_ns_) start_connecting(now_ns);
    return;
  }
  if (now_ns >= std::max(quiet_since_ns(), connected_ns_) + options_.reconnect_after_ns) return break_link(now_ns);
  if (state_ == LinkState::open && now_ns >= std::max(quiet_since_ns(), last_ping_ns_) + options_.ping_after_ns) {
    ping(now_ns);
  }
}

void LinkSender::expect_receipts(std::uint64_t now_ns) {
  if (!is_owed_receipts_only()) return;
  const bool is_new = now_ns >= receipts_expected_until_ns_;
  const std::uint64_t lapse_ns = std::max(options_.timeout_ns / 2, longest_between_looks_ns);
  receipts_expected_until_ns_ = options_.timeout_ns == 0 ? never : now_ns + lapse_ns;
  if (state_ == LinkState::open && (is_new || !awaits_pong_))
    ask_for_received(now_ns);
  else if (is_new)
    needed_since_ns_ = now_ns;
  note_need(now_ns);
}

// The silence counts from the question, however late that is.
void LinkSender::ask_for_received(std::uint64_t now_ns) {
  needed_since_ns_ = now_ns;
  ping(now_ns);
}

void LinkSender::ping(std::uint64_t now_ns) {
  last_ping_ns_ = now_ns;
  awaits_pong_ = true;
  controls_.say(FrameKind::ping, 0, ++nonce_, told());
}

bool LinkSender::close(std::uint64_t now_ns) {
  if (state_ >= LinkState::closing) return true;
  if (unanswered_ != 0) return false;
  if (!letters_.is_empty()) {
    if (is_owed_receipts_only())
      expect_receipts(now_ns);
    else if (state_ == LinkState::open && !awaits_pong_)
      ask_for_received(now_ns);
    return false;
  }
  wanted_ = 0;
  if (state_ == LinkState::open) {
    state_ = LinkState::closing;
    controls_.say(FrameKind::bye, 0, 0, told());
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
  inbox_.make_room(unanswered_);  // before anything is done
  state_ = LinkState::failed;
  end_ = end;
  failure_ = code;
  wanted_ = 0;
  needed_since_ns_ = never;
  for (std::uint64_t ticket = requests_.begin(); ticket != requests_.end(); ++ticket) {
    if (requests_[ticket].answered) continue;
    note_answered(requests_[ticket]);
    Reply reply;
    reply.ticket = ticket;
    reply.code = code;
    inbox_.push_back(std::move(reply));
  }
  connection_.close();
  outbox_.drop_all();
  letters_.drop_all();
  early_.clear();
}

// ---- what the target says

bool LinkSender::tells_the_possible(const FrameHeader& header) const {
  return header.seen <= outbox_.sent_upto() && received_letters(header) <= letters_.sent_upto() &&
         header.credit <= charged_ + returned_ + most_credit;
}

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
  return tells_the_possible(header) ? Fault::none : Fault::malformed;
}

Fault LinkSender::obey(const Frame& frame, std::uint64_t now_ns) {
  const FrameHeader& header = frame.header;
  if (header.kind == FrameKind::hello_ack && header.stamp != nonce_ && state_ == LinkState::connecting) {
    return Fault::malformed;
  }
  if (header.kind == FrameKind::replies) {
    const Fault fault = on_replies(frame);
    if (fault != Fault::none) return fault;
  }
  last_heard_ns_ = now_ns;
  is_cut_off_ = false;
  allowed_ = std::max(allowed_, header.credit);
  outbox_.acknowledge(header.seen);
  letters_.acknowledge(received_letters(header));
  if (header.kind == FrameKind::hello_ack && state_ == LinkState::connecting) on_hello_ack();
  if (header.kind == FrameKind::pong) awaits_pong_ = false;
  if (header.kind == FrameKind::recall) on_recall(header.stamp, now_ns);
  if (header.kind == FrameKind::refused) fail(LinkEnd::refused, Code::peer_failed);
  if (header.kind == FrameKind::bye_ack && state_ == LinkState::closing) {
    state_ = LinkState::closed;
    connection_.close();
  }
  tell_seen_if_much();
  note_need(now_ns);
  pump();
  return Fault::none;
}

void LinkSender::on_hello_ack() {
  state_ = LinkState::open;
  backoff_ns_ = options_.backoff_least_ns;
  connection_.let_data_go();
  tell_want();
}

Fault LinkSender::on_replies(const Frame& frame) {
  if (!holds_whole_entries(frame)) return Fault::malformed;
  if (frame.header.records == 0) return Fault::none;
  if (frame.header.first > next_reply_) {
    const std::uint64_t bytes = sizeof(FrameHeader) + frame.payload.size();
    if (early_.has(frame.header.first)) return Fault::none;
    if (early_.charge() + bytes > reply_room_) return Fault::malformed;
    early_.add(frame, bytes);
    return Fault::none;
  }
  if (!are_due(frame)) return Fault::malformed;
  take_entries(frame);
  while (const std::optional<EarlyFrames::Early> early = early_.take(next_reply_)) {
    if (are_due(early->frame())) take_entries(early->frame());
  }
  return Fault::none;
}

// Whether each entry that has not come before answers requests that are open and fits the room they asked for.
bool LinkSender::are_due(const Frame& frame) const {
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry entry;
  for (std::uint64_t number = frame.header.first; next_entry(rest, entry, data); ++number) {
    if (number < next_reply_) continue;
    if (!requests_.holds(entry.ticket) || !requests_.holds(entry.ticket + entry.count - 1)) return false;
    for (std::uint64_t ticket = entry.ticket; ticket != entry.ticket + entry.count; ++ticket) {
      if (requests_[ticket].answered || entry.bytes > requests_[ticket].reply_capacity) return false;
    }
  }
  return true;
}

void LinkSender::take_entries(const Frame& frame) {
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry entry;
  for (std::uint64_t number = frame.header.first; next_entry(rest, entry, data); ++number) {
    if (number < next_reply_) {
      ++counters_.doubles;
    } else {
      ++next_reply_;
      untold_bytes_ += reply_charge(data.size());
      keep_reply(entry, data);
    }
  }
}

void LinkSender::keep_reply(const ReplyEntry& entry, std::span<const std::byte> data) {
  Reply reply;
  reply.ticket = entry.ticket;
  reply.count = entry.count;
  reply.code = static_cast<Code>(entry.code);
  for (std::uint64_t ticket = entry.ticket; ticket != entry.ticket + entry.count; ++ticket) {
    // Two entries of one frame that name the same ticket: the second is not handed out.
    if (requests_[ticket].answered) {
      reply.count = static_cast<std::uint32_t>(ticket - entry.ticket);
      break;
    }
    note_answered(requests_[ticket]);
  }
  if (!data.empty() && reply.count != 0) {
    const std::span<std::byte> into = requests_[entry.ticket].reply_into;
    if (into.size() < data.size()) reply.kept = std::make_unique_for_overwrite<std::byte[]>(data.size());
    std::byte* const place = reply.kept != nullptr ? reply.kept.get() : into.data();
    std::memcpy(place, data.data(), data.size());
    reply.data = {place, data.size()};
  }
  inbox_.push_back(std::move(reply));
}

void LinkSender::note_answered(Request& request) {
  request.answered = true;
  --unanswered_;
  reply_room_ -= reply_charge(request.reply_capacity);
  if (request.may_wait) may_wait_charge_ -= request.charge;
}

// Credit that no request can use now goes back. One that was refused and has enough by now gets a while to be posted
// again. Until the next request the target also learns at once which replies it need not keep.
void LinkSender::on_recall(std::uint64_t may_keep, std::uint64_t now_ns) {
  may_keep_ = may_keep;
  is_recalled_ = true;
  if (wanted_ == 0 || wanted_ > allowed_) return give_credit_back();
  give_back_at_ns_ = now_ns + options_.hold_credit_ns;
  tell_seen();
}

void LinkSender::forget_want() {
  wanted_ = 0;
  wanted_at_any_price_ = false;
}

// A request that still waits then needs as much more: it gets all that it needs at once.
void LinkSender::give_credit_back() {
  give_back_at_ns_ = never;
  const std::uint64_t unspent = allowed_ - charged_ - returned_;
  const std::uint64_t back = unspent - std::min(unspent, may_keep_);
  returned_ += back;
  if (wanted_ != 0) wanted_ += back;
  tell_seen();
}

// ---- what is handed out

bool LinkSender::hand_out(Reply& reply, TakeReply take) {
  for (; reply.count != 0; ++reply.ticket, --reply.count) {
    Request& request = requests_[reply.ticket];
    const bool waits = request.borrowed && outbox_.is_in_wire(request.frame);
    if (waits && options_.omission != Omission::wait_for_sent) return false;
    request.taken = true;
    take(reply.ticket, reply.code, reply.data);
  }
  return true;
}

std::size_t LinkSender::take_replies(TakeReply take) {
  std::size_t count = 0;
  for (; !inbox_.empty() && hand_out(inbox_.front(), take); ++count) inbox_.pop_front();
  while (!requests_.empty() && requests_.front().taken) requests_.pop_front();
  return count;
}

// The target keeps the replies that it does not know to be here, out of the credit that this side waits for or soon
// will.
void LinkSender::tell_seen_if_much() {
  const std::uint64_t unspent = allowed_ - charged_ - returned_;
  if (untold_bytes_ == 0 || state_ != LinkState::open) return;
  if (untold_bytes_ > unspent / 2 || wanted_ > allowed_ || is_recalled_) tell_seen();
}

void LinkSender::tell_seen() {
  const bool wants = wanted_ > allowed_;
  if (wants) {
    asked_at_ = allowed_ + 1;
    asked_for_ = wanted_;
    asked_at_any_price_ = wanted_at_any_price_;
  }
  controls_.say(FrameKind::seen, wants && wanted_at_any_price_ ? 1 : 0, wants ? wanted_ : 0, told());
  untold_bytes_ = 0;
}

Told LinkSender::told() const { return {.seen = next_reply_, .credit = returned_}; }

void LinkSender::pump() {
  const Told now = told();
  const bool letters_left = letters_.pump(now), controls_left = controls_.pump(now);
  if (outbox_.pump(now) || controls_left || letters_left) untold_bytes_ = 0;
}

}  // namespace farsum::link
