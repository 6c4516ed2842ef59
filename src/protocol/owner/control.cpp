// The owner's half of what is no operation: locks and what waits behind them, posts and completes, teams, life.
#include <cstring>
#include <iterator>

#include "protocol/owner/service.hpp"

namespace farsum {

namespace {

// Operations are under the window's own lock.
ProxyLocks::Key lock_of(const wire::MessageHeader& header, Rank from) {
  const bool names_one = header.kind == wire::MessageKind::lock || header.kind == wire::MessageKind::unlock;
  return {header.window, from, names_one ? header.slot : 0};
}

}  // namespace

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
      return proxies_.lock(exposure, key, mode,
                           (header.flags & wire::flag_at_once) != 0 ? ProxyLocks::WhenTaken::at_once_or_not
                                                                    : ProxyLocks::WhenTaken::queues,
                           token);
    case wire::MessageKind::unlock:
      return proxies_.unlock(exposure, key, mode);
    case wire::MessageKind::post:
      // Release: pairs with the acquire load in are_more_than (post_epochs.cpp).
      exposure.own.posts()[header.offset].fetch_add(1, std::memory_order_release);
      break;
    default:
      // Release: the operations come before; pairs with the acquire load in Window::wait_exposure.
      exposure.own.head().completes.fetch_add(1, std::memory_order_release);
      break;
  }
  notify_listener();
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

void TargetService::notify_listener() {
  if (options_.listener != nullptr) options_.listener->on_notified();
}

// ---- what waits for a lock ----

// An operation or the unlock behind a lock that waits: kept for its turn; behind one that was refused: refused, too.
bool TargetService::is_held_back(Rank from, const wire::Message& message, std::span<const std::byte> bytes,
                                 std::size_t reply_bytes, ReplyToken token, Served& held_back) {
  if (parked_.empty() && !proxies_.has_unresolved()) [[likely]]
    return false;
  const wire::MessageKind kind = message.header.kind;
  const bool belongs_to_lock =
      kind == wire::MessageKind::operate || kind == wire::MessageKind::scatter || kind == wire::MessageKind::unlock;
  if (!belongs_to_lock) return false;
  const ProxyLocks::Key key = lock_of(message.header, from);
  if (const Code refusal = proxies_.refusal_of(key); refusal != Code::ok) {
    if (kind == wire::MessageKind::unlock) proxies_.drop_refusal(key);
    held_back = {Served::Kind::done, refusal, 0};
    return true;
  }
  if (!proxies_.is_waiting(key) && !parked_.contains(key)) return false;
  held_back = park(key, bytes, reply_bytes, token);
  return true;
}

Served TargetService::park(const ProxyLocks::Key& key, std::span<const std::byte> bytes, std::size_t reply_bytes,
                           ReplyToken token) {
  // An honest sender has less under way without knowing that it holds the lock; beyond, its later messages wait as
  // well.
  constexpr std::uint64_t most_bytes = 65536;
  ParkedQueue& queue = parked_[key];
  const std::uint64_t needed = sizeof(Parked) + bytes.size() + reply_bytes;
  if (!queue.messages.empty() && queue.bytes + needed > most_bytes) return {Served::Kind::again};
  Parked& parked = queue.messages.emplace_back();
  parked.token = token;
  parked.message.assign(bytes.begin(), bytes.end());
  parked.reply.resize(reply_bytes);
  queue.bytes += needed;
  return {Served::Kind::later};
}

// Serves what waited behind locks that are held now, as far as it goes.
void TargetService::serve_parked(const ExposureTable::Reading& reading) {
  has_unfinished_ = false;
  for (auto at = parked_.begin(); at != parked_.end();) {
    auto& [key, queue] = *at;
    if (!proxies_.is_waiting(key)) {
      while (!queue.messages.empty() && finish_parked(reading, key, queue.messages.front())) {
        const Parked& parked = queue.messages.front();
        queue.bytes -= sizeof(Parked) + parked.message.size() + parked.reply.size();
        queue.messages.pop_front();
      }
      has_unfinished_ = has_unfinished_ || !queue.messages.empty();
    }
    at = queue.messages.empty() ? parked_.erase(at) : std::next(at);
  }
}

bool TargetService::finish_parked(const ExposureTable::Reading& reading, const ProxyLocks::Key& key, Parked& parked) {
  // Sound: it was when it came.
  const wire::Message message = *wire::decode(parked.message);
  const Exposure* exposure = reading.find(key.window);
  Served served{Served::Kind::done, Code::handle, 0};
  if (exposure != nullptr)
    served = serve_now(key.holder, message, *exposure, parked.reply, parked.token, parked.progress);
  if (served.kind == Served::Kind::again) return false;
  release_slot(parked.progress);
  if (served.code != Code::ok) ++refused_;
  transport_->complete(parked.token, served.code, std::span(parked.reply).first(served.reply_bytes));
  return true;
}

void TargetService::grant_waiting() {
  if (!proxies_.has_waiting() && parked_.empty()) return;
  const ExposureTable::Reading reading(exposures_);
  if (reading.got()) tell_granted(reading);
}

// An unlock that was parked may grant to others.
void TargetService::tell_granted(const ExposureTable::Reading& reading) {
  const auto tell = [this](ReplyToken token, Code code) { transport_->complete(token, code, {}); };
  do {
    serve_parked(reading);
  } while (proxies_.resolve(reading, tell) != 0);
}

bool TargetService::forget(Rank dead) {
  leases_.forget(dead);
  const ExposureTable::Reading reading(exposures_);
  if (!reading.got()) return false;
  // First what would be applied without the lock.
  bool all = true;
  for (auto at = parked_.begin(); at != parked_.end();) {
    auto& [key, queue] = *at;
    const bool is_in_work = key.holder == dead && queue.messages.front().progress.transfer_under_way;
    all = all && !is_in_work;
    at = key.holder == dead && !is_in_work ? parked_.erase(at) : std::next(at);
  }
  all = all && proxies_.forget(reading, dead);
  tell_granted(reading);
  return all;
}

}  // namespace farsum
