#include "protocol/owner/service.hpp"

#include <cstring>

namespace farsum {

TargetService::TargetService(Options options, ExposureTable& exposures)
    : options_(std::move(options)),
      exposures_(exposures),
      applier_(options_),
      leases_(options_.make_leases ? options_.make_leases(applier_) : nullptr),
      locks_(options_.rank, options_.liveness),
      parked_(locks_) {}

Served TargetService::on_request(Rank from, std::span<const std::byte> bytes, std::span<std::byte> reply_room,
                                 ReplyToken token) {
  const std::optional<wire::Message> message = wire::decode(bytes);
  Sender& sender = senders_[from];
  if (!message) {
    ++refused_;
    // Its sender has counted it: what follows is not to be refused as well.
    if (wire::sequence_of(bytes) == sender.next_sequence) ++sender.next_sequence;
    return {Served::Kind::done, Code::argument, 0};
  }
  if (message->header.sequence != sender.next_sequence) {
    // A double of one that was done is answered and dropped; a gap cannot come from a transport that keeps its
    // contract.
    ++refused_;
    const bool is_double = message->header.sequence < sender.next_sequence;
    return {Served::Kind::done, is_double ? Code::ok : Code::argument, 0};
  }
  const Served served = serve(from, *message, bytes, reply_room, token, sender.work);
  if (served.kind != Served::Kind::again) {
    OperationApplier::release(sender.work);
    sender = {.work = {}, .next_sequence = message->header.sequence + 1};
    if (served.code != Code::ok) ++refused_;
  }
  return served;
}

Served TargetService::serve(Rank from, const wire::Message& message, std::span<const std::byte> bytes,
                            std::span<std::byte> reply_room, ReplyToken token, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  if (header.kind == wire::MessageKind::team) return serve_team(from, message);
  if (header.kind == wire::MessageKind::life) return serve_life(reply_room);
  const ExposureTable::Reading reading(exposures_);
  if (!reading.got()) return {Served::Kind::again};
  const Exposure* exposure = reading.find(header.window);
  if (exposure == nullptr) return {Served::Kind::done, Code::handle, 0};
  Served held_back;
  if (parked_.is_held_back(message, {from, bytes, reply_room.size(), token}, held_back)) return held_back;
  const Served served = serve_now(from, message, *exposure, reply_room, token, work);
  if (header.kind == wire::MessageKind::unlock) tell_granted(reading);
  return served;
}

Served TargetService::serve_now(Rank from, const wire::Message& message, const Exposure& exposure,
                                std::span<std::byte> reply_room, ReplyToken token, RequestWork& work) {
  switch (message.header.kind) {
    case wire::MessageKind::operate:
    case wire::MessageKind::scatter:
      return applier_.serve(from, message, exposure, reply_room, work);
    case wire::MessageKind::lease:
    case wire::MessageKind::lease_put:
      if (leases_ == nullptr) return {Served::Kind::done, Code::unsupported, 0};
      return leases_->serve(from, message, exposure, reply_room, work);
    default:
      return serve_epoch(from, message.header, exposure, token);
  }
}

// Post and complete count as their senders' operations do: whatever came before has been served.
Served TargetService::serve_epoch(Rank from, const wire::MessageHeader& header, const Exposure& exposure,
                                  ReplyToken token) {
  if (!exposure.own.is_here()) return {Served::Kind::done, Code::unsupported, 0};
  if (header.offset >= exposure.ranks.size() || exposure.ranks[header.offset] != from)
    return {Served::Kind::done, Code::rank, 0};
  const ProxyLocks::Key key = lock_of(header, from);
  if (key.index >= exposure.own.locks()) return {Served::Kind::done, Code::range, 0};
  const LockMode mode = (header.flags & wire::flag_exclusive) != 0 ? LockMode::exclusive : LockMode::shared;
  switch (header.kind) {
    case wire::MessageKind::lock:
      return locks_.lock(exposure, key, mode,
                         (header.flags & wire::flag_at_once) != 0 ? ProxyLocks::WhenTaken::at_once_or_not
                                                                  : ProxyLocks::WhenTaken::queues,
                         token);
    case wire::MessageKind::unlock:
      return locks_.unlock(exposure, key, mode);
    case wire::MessageKind::post:
      // Release: pairs with the acquire load in are_more_than (post_epochs.cpp).
      exposure.own.posts()[header.offset].fetch_add(1, std::memory_order_release);
      break;
    default:
      // Release: the operations come before; pairs with the acquire load in PostEpochs::has_completed.
      exposure.own.head().completes.fetch_add(1, std::memory_order_release);
      break;
  }
  if (options_.listener != nullptr) options_.listener->on_notified();
  return {};
}

Served TargetService::serve_team(Rank from, const wire::Message& message) {
  if (options_.team_mail == nullptr) return {Served::Kind::done, Code::unsupported, 0};
  const wire::MessageHeader& header = message.header;
  const bool is_last = (header.flags & wire::flag_more) == 0;
  const Code code = options_.team_mail->on_team_message(from, header.window, header.offset, message.operand, is_last);
  return {Served::Kind::done, code, 0};
}

Served TargetService::serve_life(std::span<std::byte> reply_room) {
  const std::uint32_t dead = options_.known_dead ? options_.known_dead() : 0;
  if (reply_room.size() < sizeof dead) return {Served::Kind::done, Code::argument, 0};
  std::memcpy(reply_room.data(), &dead, sizeof dead);
  return {Served::Kind::done, Code::ok, sizeof dead};
}

// ---- what waits for a lock ----

bool TargetService::finish_parked(const ExposureTable::Reading& reading, const ProxyLocks::Key& key,
                                  ParkedRequest& parked) {
  // Sound: it was when it came.
  const wire::Message message = *wire::decode(parked.message);
  const Exposure* exposure = reading.find(key.window);
  Served served{Served::Kind::done, Code::handle, 0};
  if (exposure != nullptr) served = serve_now(key.holder, message, *exposure, parked.reply, parked.token, parked.work);
  if (served.kind == Served::Kind::again) return false;
  OperationApplier::release(parked.work);
  if (served.code != Code::ok) ++refused_;
  transport_->complete(parked.token, served.code, std::span(parked.reply).first(served.reply_bytes));
  return true;
}

void TargetService::grant_waiting() {
  if (!locks_.has_waiting() && parked_.is_empty()) return;
  const ExposureTable::Reading reading(exposures_);
  if (reading.got()) tell_granted(reading);
}

// An unlock that was parked may grant to others.
void TargetService::tell_granted(const ExposureTable::Reading& reading) {
  const auto tell = [this](ReplyToken token, Code code) { transport_->complete(token, code, {}); };
  const auto finish = [&](const ProxyLocks::Key& key, ParkedRequest& parked) {
    return finish_parked(reading, key, parked);
  };
  do {
    parked_.serve(finish);
  } while (locks_.resolve(reading, tell) != 0);
}

bool TargetService::forget(Rank dead) {
  if (leases_ != nullptr) leases_->forget(dead);
  const ExposureTable::Reading reading(exposures_);
  if (!reading.got()) return false;
  // First what would be applied without the lock.
  bool all = parked_.forget(dead);
  all = all && locks_.forget(reading, dead);
  tell_granted(reading);
  return all;
}

}  // namespace farsum
