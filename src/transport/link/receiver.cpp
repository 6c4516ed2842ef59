#include "transport/link/receiver.hpp"

namespace farsum::link {
namespace {

constexpr std::size_t most_address_bytes = 4096;

}  // namespace

LinkReceiver::LinkReceiver(const ReceiverOptions& options, Wire& wire, CreditPool& pool)
    : options_(options),
      connection_(options, wire, counters_, true),
      controls_(connection_),
      outbox_(options, connection_, counters_, FrameKind::replies),
      requests_(options, counters_),
      letters_(options, options.letters, counters_),
      credit_(pool, *this, options.most_window),
      report_(requests_, letters_, credit_, controls_, outbox_),
      desk_(options, requests_, credit_, report_, outbox_) {}

// ---- frames

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
  // Nothing is taken back, and nobody tells what only we could have given. What has come early has used credit, too.
  const bool tells_the_possible =
      header.seen <= outbox_.sent_upto() && credit_.can_have_returned(header.credit, requests_.early_charge());
  return tells_the_possible || dead_ ? Fault::none : Fault::malformed;
}

Fault LinkReceiver::obey(const Frame& frame, RequestHandler& handler) {
  const FrameHeader& header = frame.header;
  if (header.kind == FrameKind::requests) {
    const Fault fault = desk_.on_requests(frame, handler);
    if (fault != Fault::none) return fault;
  }
  if (header.kind == FrameKind::letters) {
    const Fault fault = letters_.on_letter(frame);
    if (fault != Fault::none) return fault;
  }
  if (header.kind == FrameKind::seen &&
      header.stamp > credit_.allowed() + charge(max_message_bytes(options_), max_reply_bytes(options_))) {
    return Fault::malformed;
  }
  if (header.kind == FrameKind::hello && frame.payload.size() > most_address_bytes) return Fault::malformed;
  if (!dead_) {
    outbox_.acknowledge(header.seen);
    credit_.take_back(header.credit);
    credit_.release(outbox_.take_freed_charge());
  }
  if (header.kind == FrameKind::hello) on_hello(frame);
  if (header.kind == FrameKind::seen) credit_.want(header.stamp, header.first == 1);
  if (header.kind == FrameKind::ping) report_.say(FrameKind::pong, header.stamp);
  if (header.kind == FrameKind::bye) on_bye();
  return Fault::none;
}

void LinkReceiver::on_bye() {
  drop_all();
  closed_ = true;
  report_.say(FrameKind::bye_ack, 0);
}

// ---- connections back

void LinkReceiver::on_hello(const Frame& frame) {
  hello_stamp_ = frame.header.stamp;
  if (frame.header.epoch == epoch_) {  // its answer was lost, or it came twice
    if (connection_.is_up()) greet();
    return;
  }
  if (epoch_ == 0 && !dead_ && !closed_) credit_.begin();
  epoch_ = frame.header.epoch;
  address_.assign(frame.payload.begin(), frame.payload.end());
  requests_.forget_early();
  letters_.forget_early();
  credit_.forget_recall();
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
  if (dead_ || closed_) return report_.say(FrameKind::refused, hello_stamp_);
  report_.greet(hello_stamp_);
  connection_.let_data_go();
}

void LinkReceiver::on_sent(FrameId id, bool ok) {
  ControlFrames::is_control(id) ? controls_.on_sent(id) : outbox_.on_sent(id);
  credit_.release(outbox_.take_freed_charge());
  if (!ok) connection_.close();
  if ((closed_ || dead_) && outbox_.is_quiet() && controls_.is_quiet()) connection_.close();
  report_.pump();
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
  requests_.forget_early();
  letters_.forget_early();
  desk_.drop_all();
  outbox_.drop_all();
  outbox_.take_freed_charge();
  credit_.end();
}

// ---- credit and turns

bool LinkReceiver::take_credit() {
  credit_.renew(true);
  report_.tell();
  return !credit_.is_short();
}

bool LinkReceiver::return_idle_credit() {
  if (!connection_.is_up() || !credit_.recall(outbox_.holds_frames())) return false;
  report_.say(FrameKind::recall, credit_.base());
  return true;
}

void LinkReceiver::end_turn() {
  if (closed_ || dead_ || shut_ || epoch_ == 0) return;
  credit_.renew(false);
  credit_.wait_if_short();
  report_.tell();
}

}  // namespace farsum::link
