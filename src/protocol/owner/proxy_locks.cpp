#include "protocol/owner/proxy_locks.hpp"

#include <algorithm>
#include <optional>

namespace farsum {
namespace {

Served answer(Code code) { return {Served::Kind::done, code, 0}; }

constexpr Served again{Served::Kind::again};

// Turns a rank of the job into the window's.
std::uint32_t rank_in(const Exposure& exposure, Rank holder) {
  const auto found = std::find(exposure.ranks.begin(), exposure.ranks.end(), holder);
  return static_cast<std::uint32_t>(found - exposure.ranks.begin());
}

}  // namespace

Served ProxyLocks::lock(const Exposure& exposure, const Key& key, LockMode mode, WhenTaken when_taken,
                        ReplyToken token) {
  // What is sent behind a second lock is under the first.
  if (proxies_.contains(key)) return answer(Code::sync);
  refused_.erase(key);
  if (exposure.refuses_locks) return refuse(key, Code::sync);
  SharedLock<HolderDead> lock = view(exposure, key);
  const std::uint32_t rank = rank_in(exposure, key.holder);
  const Contender holder = contender(key, rank);
  const Requested requested =
      when_taken == WhenTaken::queues ? lock.request(me_, holder, mode) : lock.request_at_once(me_, holder, mode);
  switch (requested.kind) {
    case Requested::Kind::busy:
      return again;
    case Requested::Kind::taken:
      return answer(Code::pending);
    case Requested::Kind::full:
      return refuse(key, Code::system);
    case Requested::Kind::granted:
      proxies_[key] = {.mode = mode, .rank = rank, .token = {}};
      return {};
    case Requested::Kind::queued:
      proxies_[key] = {.mode = mode, .is_waiting = true, .slot = requested.slot, .rank = rank, .token = token};
      waiting_.push_back(key);
      return {Served::Kind::later};
    case Requested::Kind::refused:
      break;
  }
  return answer(Code::system);
}

Served ProxyLocks::unlock(const Exposure& exposure, const Key& key, LockMode mode) {
  const auto proxy = proxies_.find(key);
  if (proxy == proxies_.end() || proxy->second.is_waiting || proxy->second.mode != mode) return answer(Code::sync);
  const std::optional<bool> held = view(exposure, key).give_back(me_, contender(key, proxy->second.rank), mode);
  if (!held) return again;
  proxies_.erase(proxy);
  return answer(*held ? Code::ok : Code::sync);
}

Served ProxyLocks::refuse(const Key& key, Code code) {
  refused_[key] = code;
  return answer(code);
}

Code ProxyLocks::refusal_of(const Key& key) const {
  const auto refused = refused_.find(key);
  return refused == refused_.end() ? Code::ok : refused->second;
}

std::size_t ProxyLocks::resolve(const ExposureTable::Reading& reading, FunctionRef<void(ReplyToken, Code)> told) {
  std::size_t resolved = 0;
  for (std::size_t i = 0; i < waiting_.size();) {
    const Key key = waiting_[i];
    const Exposure* exposure = reading.find(key.window);
    Proxy& proxy = proxies_.at(key);
    if (exposure != nullptr && !view(*exposure, key).has_been_granted(proxy.slot)) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    proxy.is_waiting = false;
    const ReplyToken token = proxy.token;
    if (exposure == nullptr) proxies_.erase(key);
    told(token, exposure == nullptr ? Code::handle : Code::ok);
    ++resolved;
  }
  return resolved;
}

bool ProxyLocks::is_waiting(const Key& key) const {
  return std::find(waiting_.begin(), waiting_.end(), key) != waiting_.end();
}

bool ProxyLocks::forget(const ExposureTable::Reading& reading, Rank dead) {
  bool all = true;
  std::erase_if(refused_, [dead](const auto& refused) { return refused.first.holder == dead; });
  for (auto at = proxies_.begin(); at != proxies_.end();) {
    const auto& [key, proxy] = *at;
    const Exposure* exposure = reading.find(key.window);
    bool is_out = key.holder == dead && exposure == nullptr;
    if (key.holder == dead && exposure != nullptr) {
      SharedLock<HolderDead> lock = view(*exposure, key);
      std::optional<bool> withdrawn = false;
      if (proxy.is_waiting) withdrawn = lock.withdraw(me_, proxy.slot);
      // One that was not waiting any more holds the lock.
      is_out = withdrawn && (*withdrawn || lock.give_back(me_, contender(key, proxy.rank), proxy.mode));
      all = all && is_out;
    }
    // The dead may have been inside the guard, about to grant to another.
    if (key.holder != dead && proxy.is_waiting && exposure != nullptr) view(*exposure, key).mend(me_);
    if (is_out) std::erase(waiting_, key);
    at = is_out ? proxies_.erase(at) : std::next(at);
  }
  return all;
}

}  // namespace farsum
