// The owner's half of locks that come as messages: it takes them in its own locks in shared memory on behalf of ranks
// that cannot reach it, so that these and the ranks of its node queue together, in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/function_ref.hpp"
#include "protocol/exposure.hpp"
#include "transport/transport.hpp"

namespace farsum {

// One thread drives an object at a time. Nothing here waits: a guard that is not free means `again`.
class ProxyLocks {
 public:
  struct Key {
    WindowId window = 0;
    Rank holder = 0;
    std::uint32_t index = 0;  // of the owner's locks
    bool operator==(const Key&) const = default;
    bool operator<(const Key& other) const {
      return std::tie(window, holder, index) < std::tie(other.window, other.holder, other.index);
    }
  };

  // What becomes of a request whose lock is taken.
  enum class WhenTaken : std::uint8_t { queues, at_once_or_not };

  ProxyLocks(Rank owner, const Liveness* liveness) : me_(owner + 1), liveness_(liveness) {}

  // A lock that has to wait is answered later: see resolve. Of one that is refused, that much is remembered: what its
  // holder-to-be has sent behind it must not be done.
  Served lock(const Exposure& exposure, const Key& key, LockMode mode, WhenTaken when_taken, ReplyToken token);
  Served unlock(const Exposure& exposure, const Key& key, LockMode mode);

  // Calls told(token, code) for each request that need not wait any more: it was granted, or its window has gone.
  // Returns how many.
  std::size_t resolve(const ExposureTable::Reading& reading, FunctionRef<void(ReplyToken, Code)> told);

  bool has_waiting() const { return !waiting_.empty(); }
  bool is_waiting(const Key& key) const;
  // Whether any request waits or was refused.
  bool has_unresolved() const { return !waiting_.empty() || !refused_.empty(); }
  // Code::ok where none was.
  Code refusal_of(const Key& key) const;
  void drop_refusal(const Key& key) { refused_.erase(key); }

  // Lets go of everything that a dead rank holds or waits for; what it wrote under a lock may be half done. False where
  // some is left, for a guard was not free: call again.
  bool forget(const ExposureTable::Reading& reading, Rank dead);

 private:
  struct Proxy {
    LockMode mode = LockMode::shared;
    bool is_waiting = false;
    std::uint32_t slot = 0;  // of one that waits
    std::uint32_t rank = 0;  // of the holder, in the window
    ReplyToken token;
  };

  SharedLock<HolderDead> view(const Exposure& exposure, const Key& key) const {
    return exposure.own.lock_view(liveness_, key.index);
  }
  static Contender contender(const Key& key, std::uint32_t rank) { return {key.holder + 1, rank}; }
  Served refuse(const Key& key, Code code);

  std::uint32_t me_;
  const Liveness* liveness_;
  std::map<Key, Proxy> proxies_;
  std::vector<Key> waiting_;
  std::map<Key, Code> refused_;
};

}  // namespace farsum
