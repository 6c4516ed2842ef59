#include "protocol/owner/parked_requests.hpp"

#include <iterator>

#include "protocol/owner/operation_applier.hpp"

namespace farsum {

// Operations are under the window's own lock.
ProxyLocks::Key lock_of(const wire::MessageHeader& header, Rank from) {
  const bool names_one = header.kind == wire::MessageKind::lock || header.kind == wire::MessageKind::unlock;
  return {header.window, from, names_one ? header.slot : 0};
}

bool ParkedRequests::is_held_back(const wire::Message& message, const Arrived& arrived, Served& held_back) {
  if (queues_.empty() && !locks_.has_unresolved()) [[likely]]
    return false;
  const wire::MessageKind kind = message.header.kind;
  const bool belongs_to_lock =
      kind == wire::MessageKind::operate || kind == wire::MessageKind::scatter || kind == wire::MessageKind::unlock;
  if (!belongs_to_lock) return false;
  const ProxyLocks::Key key = lock_of(message.header, arrived.from);
  if (const Code refusal = locks_.refusal_of(key); refusal != Code::ok) {
    if (kind == wire::MessageKind::unlock) locks_.drop_refusal(key);
    held_back = {Served::Kind::done, refusal, 0};
    return true;
  }
  if (!locks_.is_waiting(key) && !queues_.contains(key)) return false;
  held_back = park(key, arrived);
  return true;
}

Served ParkedRequests::park(const ProxyLocks::Key& key, const Arrived& arrived) {
  // An honest sender has less under way without knowing that it holds the lock; beyond, its later messages wait as
  // well.
  constexpr std::uint64_t most_bytes = 65536;
  Queue& queue = queues_[key];
  const std::uint64_t needed = sizeof(ParkedRequest) + arrived.bytes.size() + arrived.reply_bytes;
  if (!queue.requests.empty() && queue.bytes + needed > most_bytes) return {Served::Kind::again};
  ParkedRequest& parked = queue.requests.emplace_back();
  parked.token = arrived.token;
  parked.message.assign(arrived.bytes.begin(), arrived.bytes.end());
  parked.reply.resize(arrived.reply_bytes);
  queue.bytes += needed;
  return {Served::Kind::later};
}

void ParkedRequests::serve(Finish finish) {
  has_unfinished_ = false;
  for (auto at = queues_.begin(); at != queues_.end();) {
    auto& [key, queue] = *at;
    if (!locks_.is_waiting(key)) {
      while (!queue.requests.empty() && finish(key, queue.requests.front())) {
        const ParkedRequest& done = queue.requests.front();
        queue.bytes -= sizeof(ParkedRequest) + done.message.size() + done.reply.size();
        queue.requests.pop_front();
      }
      has_unfinished_ = has_unfinished_ || !queue.requests.empty();
    }
    at = queue.requests.empty() ? queues_.erase(at) : std::next(at);
  }
}

bool ParkedRequests::forget(Rank dead) {
  bool all = true;
  for (auto at = queues_.begin(); at != queues_.end();) {
    auto& [key, queue] = *at;
    const bool is_in_work = key.holder == dead && queue.requests.front().work.transfer_under_way;
    all = all && !is_in_work;
    const bool goes = key.holder == dead && !is_in_work;
    if (goes) OperationApplier::release(queue.requests.front().work);  // none behind it has begun
    at = goes ? queues_.erase(at) : std::next(at);
  }
  return all;
}

}  // namespace farsum
