// Who serves what other nodes ask of this rank: its agent; or a thread that polls something else anyway, such as an MPI
// library's progress, and attends to the network meanwhile. The agent, which would have to be woken and to take the
// processor from that thread, then sleeps through requests.
//
// One that attends and does not look, because it computes or was not given a processor, is missed within a millisecond:
// the gate that the agent sleeps on wakes it then, and it serves itself from there on. One that is stopped in the
// middle of a look holds the agent up for as long. docs/internals/serving.md has the transitions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/status.hpp"
#include "os/event_gate.hpp"
#include "progress/serving_mutex.hpp"
#include "transport/network.hpp"

namespace farsum {

// Any thread may call, unless it says otherwise.
class Attendance {
 public:
  // What the agent does for the network's requests. All but `rouse` and `after_serving` are called with the serving
  // mutex held.
  struct Parts {
    RequestHandler* handler = nullptr;
    std::function<void()> grant;                  // what waited for what was served
    std::function<bool()> needs_agent;            // what was served is to be looked after by the clock
    std::function<void()> rouse;                  // has the agent take a turn before it sleeps on
    std::function<void()> after_serving = [] {};  // in the thread that has served
    std::function<std::uint64_t()> now_ns;        // empty: the monotonic clock
    // For so long at most nobody serves where a thread that attends has gone astray. The gate's is the kernel's clock.
    std::uint64_t missed_after_ns = 1'000'000;
  };

  explicit Attendance(Parts parts);

  // Called once, before the agent sleeps on it. Where no gate can be made nobody can attend.
  void add(Network& network);
  // Held by the agent while it touches what serving touches.
  ServingMutex& serving() { return serving_; }

  // The calling thread will call attend() again and again, some microseconds apart, and then end(). unsupported where
  // there is no network, pending where a thread attends or the agent serves at the moment.
  Code begin();
  // Serves what is there, unless the agent does at the moment. False: this thread does not attend (any more), for the
  // agent has missed it; it serves now, until the next begin().
  bool attend();
  // From here on the agent serves. What had come before has been served, or the agent was roused for it. Waits for a
  // turn of the agent's at most.
  void end();
  // Nobody attends from here on. Before the agent is stopped.
  void shut();

  // The agent's, in its turn.
  void look();
  // Whether requests wait to be served again, and no thread looks after them.
  bool has_left_unfinished() const {
    return network_ != nullptr && !is_attended() && network_->has_unfinished_request();
  }
  // What the agent sleeps on, and Network::arm_requests() for it: true where somebody else looks.
  int request_descriptor() const;
  bool arm_requests();

 private:
  void serve() noexcept;
  bool try_arm();
  void close_gate(std::uint64_t now_ns);
  void give_back();
  // Relaxed, here and below: written in turns, which order it; read without one only as a hint, but by the thread that
  // it names.
  bool is_attended() const { return attending_.load(std::memory_order_relaxed) != nullptr; }
  bool is_attended_by(const void* thread) const { return attending_.load(std::memory_order_relaxed) == thread; }

  Parts parts_;
  ServingMutex serving_;  // guards what follows
  Network* network_ = nullptr;
  os::EventGate gate_;
  bool is_shut_ = false;
  std::atomic<const void*> attending_{nullptr};  // a mark of the thread's
  std::uint64_t closed_at_ns_ = 0;               // the gate, anew
};

}  // namespace farsum
