// What the agent of one rank sleeps on: the rank's doorbell, and from the moment it has one also its network. Owner:
// agent. It looks at neither requests nor replies; it says that there may be some.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/status.hpp"
#include "lockfree/bell.hpp"
#include "lockfree/doorbell.hpp"
#include "os/wake_socket.hpp"

namespace farsum {

// The network's side of the agent's sleep. Called by the agent's thread only, but for what the network itself does.
class NetworkWake {
 public:
  virtual ~NetworkWake() = default;
  // Readable when there are requests to take in, once arm_requests() has said true; false: there are some now.
  virtual int request_descriptor() = 0;
  virtual bool arm_requests() = 0;
  // The same for replies to this rank.
  virtual int reply_descriptor() = 0;
  virtual bool arm_replies() = 0;
  // The same for network cards, which reach memory by themselves but not each other: readable when there is something
  // to be looked after, once arm_card() has said true. Negative: none is used.
  virtual int card_descriptor() { return -1; }
  virtual bool arm_card() { return true; }
  // When this rank's side of the network has something to do next, by the monotonic clock; `never` where it has not.
  virtual std::uint64_t next_deadline_ns() = 0;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
};

// One thread sleeps, the agent's; the rest any thread of the process may call.
//
// Replies are the business of the threads that wait for them, so the agent sleeps through them unless somebody asks
// that they be watched: the agent's chores, after a thread that goes on while something is under way has asked. A watch
// ends with the first reply, or when a deadline has come; the agent's chores then look after the network, and watch on
// if there is still something. When what happens is for lockfree/bell.hpp to say; this has the descriptors and the
// times.
class RankBell {
 public:
  // `name` is where others wake this rank when it sleeps on descriptors.
  RankBell(Doorbell& doorbell, const os::WakeName& name) : name_(name), bell_(doorbell, descriptors_) {}

  // Sleeps until there may be something to do, at most timeout_ns nanoseconds (0 means for ever); false when the time
  // was up.
  bool sleep(std::uint64_t timeout_ns) { return bell_.sleep(timeout_ns); }
  // Called by an agent that never sleeps: a watch ends at once.
  void pass() { bell_.pass(); }
  // Whether a watch has ended, or a look was asked for, since the last time this was asked, by the agent's chores.
  bool watch_has_ended() { return bell_.take_look(); }

  // Makes this and every later sleep return at once.
  void wake() { bell_.stop(); }
  bool stopped() const { return bell_.stopped(); }

  // Sleeps on the network, too, from now on, also the sleep that is under way. Called again, with the same, where it
  // has more to sleep on than before; `network` outlives the agent.
  Status add_network(NetworkWake& network);
  // Begins a watch; without a network it does nothing.
  void watch_replies() { bell_.watch(); }
  // The same for who cannot wait for a reply: one that has come may have been taken by another thread. It ends the
  // watch that is under way.
  void ask_for_look() { bell_.ask_for_look(); }

 private:
  // See BasicBell. Both are written before the bell is told of the network, and not again.
  struct Descriptors {
    bool arm() { return network->arm_requests() && network->arm_card(); }
    bool arm_replies() { return network->arm_replies(); }
    WaitEnd wait(bool watches, std::uint64_t timeout_ns);
    void wake() const { socket.wake(); }

    os::WakeSocket socket;
    NetworkWake* network = nullptr;
  };

  const os::WakeName name_;
  std::mutex adding_;
  Descriptors descriptors_;
  BasicBell<SystemAtomics, Descriptors> bell_;
};

}  // namespace farsum
