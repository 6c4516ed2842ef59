// Requests whose sender does not hold the lock yet that it counts on: kept for their turn, or refused with the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "protocol/messages.hpp"
#include "protocol/owner/proxy_locks.hpp"
#include "protocol/owner/request_work.hpp"
#include "transport/transport.hpp"

namespace farsum {

struct ParkedRequest {
  ReplyToken token;
  std::vector<std::byte> message;
  std::vector<std::byte> reply;
  RequestWork work;
};

// One thread drives an object at a time.
class ParkedRequests {
 public:
  // Outlives it.
  explicit ParkedRequests(ProxyLocks& locks) : locks_(locks) {}

  struct Arrived {
    Rank from = 0;
    std::span<const std::byte> bytes;
    std::size_t reply_bytes = 0;
    ReplyToken token;
  };
  // An operation or the unlock behind a lock that waits: kept; behind one that was refused: refused, too. False: it is
  // to be served now.
  bool is_held_back(const wire::Message& message, const Arrived& arrived, Served& held_back);
  // Serves what is behind locks that are held now, as far as it goes; `finish` answers false for what cannot be
  // finished yet.
  using Finish = FunctionRef<bool(const ProxyLocks::Key& key, ParkedRequest& request)>;
  void serve(Finish finish);
  // What a dead rank has sent. False where some of it is in work: call again.
  bool forget(Rank dead);

  bool is_empty() const { return queues_.empty(); }
  // Whether something behind a lock that is held could not be finished when it was last tried.
  bool has_unfinished() const { return has_unfinished_; }

 private:
  struct Queue {
    std::deque<ParkedRequest> requests;
    std::uint64_t bytes = 0;
  };
  Served park(const ProxyLocks::Key& key, const Arrived& arrived);

  ProxyLocks& locks_;
  std::map<ProxyLocks::Key, Queue> queues_;
  bool has_unfinished_ = false;
};

// Which of the owner's locks a request is under, or is about.
ProxyLocks::Key lock_of(const wire::MessageHeader& header, Rank from);

}  // namespace farsum
