// The owner's half of locks that come as messages: it takes them in its own lock in shared memory on behalf of ranks
// that cannot reach it, so that these and the ranks of its node queue together, in one order.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/exposure.hpp"
#include "transport/transport.hpp"

namespace farsum {

// One thread drives an object at a time. Nothing here waits: a guard that is not free means `again`.
class ProxyLocks {
 public:
  struct Key {
    WindowId window = 0;
    Rank holder = 0;
    auto operator<=>(const Key&) const = default;
  };

  ProxyLocks(Rank owner, const Liveness* liveness) : me_(owner + 1), liveness_(liveness) {}

  // A lock that has to wait is answered later: see for_each_settled.
  Served lock(const Exposure& exposure, const Key& key, LockMode mode, ReplyToken token);
  Served unlock(const Exposure& exposure, const Key& key, LockMode mode);

  bool has_waiting() const { return !waiting_.empty(); }
  bool is_waiting(const Key& key) const;

  // Calls told(key, token, code) for each request that need not wait any more: it was granted, or its window has gone.
  template <class Told>
  void for_each_settled(const ExposureTable::Reading& reading, Told&& told) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const Key key = waiting_[i];
      const Exposure* exposure = reading.find(key.window);
      Proxy& proxy = proxies_.at(key);
      if (exposure != nullptr && !view(*exposure).has_been_granted(proxy.slot)) {
        ++i;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      proxy.is_waiting = false;
      const ReplyToken token = proxy.token;
      if (exposure == nullptr) proxies_.erase(key);
      told(key, token, exposure == nullptr ? Code::handle : Code::ok);
    }
  }

  // Lets go of everything that a dead rank holds or waits for; what it wrote under a lock may be half done. False where
  // some is left, for a guard was not free: call again.
  bool forget(const ExposureTable::Reading& reading, Rank dead);

 private:
  struct Proxy {
    LockMode mode = LockMode::shared;
    bool is_waiting = false;
    std::uint32_t slot = 0;  // of one that waits
    ReplyToken token;
  };

  SharedLock<HolderDead> view(const Exposure& exposure) const { return exposure.own.lock_view(liveness_); }
  static std::uint32_t id_of(const Key& key) { return key.holder + 1; }

  std::uint32_t me_;
  const Liveness* liveness_;
  std::map<Key, Proxy> proxies_;
  std::vector<Key> waiting_;
};

}  // namespace farsum
