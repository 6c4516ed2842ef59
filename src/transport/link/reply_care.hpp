// Who looks for replies that no thread has polled yet: the threads themselves, or the agent, for those that are absent
// or asleep. A state machine without lock and clock; docs/internals/reply_care.md has its table.
//
// The agent looks each time it comes, asks before it sleeps, and then sleeps on replies where has_agent() says so.
// Whatever may leave a reply without anybody to look for it has the agent roused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "transport/network.hpp"

namespace farsum::link {

class ReplyCare {
 public:
  enum class State : std::uint8_t {
    none,                // nothing is left behind: each thread looks for its own
    called,              // the agent is up, or was roused: it asks before it sleeps
    threads_until,       // threads look for what is left behind: the agent asks at ask_at_ns() whether they still do
    agent_for_absent,    // the agent sleeps on replies, since nobody else looks for what is left behind
    agent_for_sleepers,  // and does so for threads that sleep until it wakes them
  };
  enum class Action : std::uint8_t { none, rouse };
  // Of this rank's requests, by whoever sent them; of its letters those that have not left, or that wait behind some
  // that have: that letters were received is nobody's business.
  enum class UnderWay : std::uint8_t { nothing, something };
  using Threads = Network::Threads;
  static constexpr std::uint64_t never = Network::never;

  struct Pace {
    // Where threads look, or may have what they slept for, the agent asks again after so long.
    std::uint64_t ask_again_after_ns = 1'000'000;
    // It asks less and less often for undelivered replies that nobody comes for, up to this gap.
    std::uint64_t longest_gap_ns = 100'000'000;
    // Replies wake an agent that sleeps on them, though a thread has taken them before it comes: after so many polls
    // that took some it is asked to see whether it must.
    std::uint32_t polls_beside_agent = 8;
  };

  struct Data {
    State state = State::none;
    bool is_left = false;  // something was left behind, and the agent has not yet seen all requests at their end
    // Since the agent last asked:
    bool was_polled = false;               // by a thread for itself
    bool was_taken = false;                // something, for others than those who poll
    bool has_more_undelivered = false;     // links than before
    std::uint32_t polls_beside_agent = 0;  // that took something while it slept on replies

    std::size_t undelivered = 0;      // links with replies that were taken in from the network and not polled
    std::uint64_t due_ns = 0;         // when the agent is to ask for these
    std::uint64_t gap_ns = 0;         // and after which again
    std::uint64_t ask_at_ns = never;  // as the agent was last told
  };

  ReplyCare() = default;
  ReplyCare(const Data& data, const Pace& pace) : data_(data), pace_(pace) {}
  const Data& data() const { return data_; }

  State state() const { return data_.state; }
  // Whether the agent sleeps on replies, or is about to.
  bool has_agent() const { return state() == State::agent_for_absent || state() == State::agent_for_sleepers; }
  // When the agent is to ask again at the latest.
  std::uint64_t ask_at_ns() const { return data_.ask_at_ns; }

  // ---- undelivered replies: a link has some, or no more

  void undelivered_came() {
    ++data_.undelivered;
    data_.has_more_undelivered = true;
  }
  void undelivered_went() { --data_.undelivered; }

  // ---- threads; each says whether the agent is to be roused

  // A thread goes on though what it has posted has not left at once.
  Action left_behind(UnderWay requests) {
    return data_.is_left || requests == UnderWay::nothing ? Action::none : hand_over();
  }
  // A thread sleeps next, or could not post: the agent looks even where nothing is under way.
  Action hand_over() {
    data_.is_left = true;
    return call();
  }
  // A thread has polled for itself, and taken so many replies.
  Action polled(std::size_t taken, UnderWay requests) {
    data_.was_polled = true;
    if (!has_agent()) return Action::none;
    if (taken != 0) {
      // It has taken what the agent sleeps for.
      const bool is_over = state() == State::agent_for_absent && requests == UnderWay::nothing;
      if (is_over || ++data_.polls_beside_agent == pace_.polls_beside_agent) return call();
    }
    return call_for_undelivered();
  }
  // Replies were taken for others than who polls, by the agent or by a thread.
  Action taken_beside(std::size_t taken) {
    data_.was_taken = data_.was_taken || taken != 0;
    return has_agent() ? call_for_undelivered() : Action::none;
  }

  // ---- the agent

  // It takes in what has come, and looks at all links next.
  void agent_came() { data_.state = State::called; }
  // Before it sleeps.
  void agent_asks(Threads threads, UnderWay requests, std::uint64_t now_ns) {
    if (requests == UnderWay::nothing) data_.is_left = false;
    const bool is_looked_for = std::exchange(data_.was_polled, false) || threads == Threads::look;
    const bool may_have_gone = std::exchange(data_.was_taken, false);
    data_.polls_beside_agent = 0;
    pace_undelivered(now_ns);
    if (threads == Threads::sleep) {
      tell(State::agent_for_sleepers, may_have_gone ? now_ns + pace_.ask_again_after_ns : never);
    } else if (!data_.is_left) {
      tell(State::none, never);
    } else if (is_looked_for) {
      tell(State::threads_until, now_ns + pace_.ask_again_after_ns);
    } else {
      tell(State::agent_for_absent, never);
    }
  }

 private:
  Action call() {
    data_.state = State::called;
    return Action::rouse;
  }
  // The network has nothing more to tell of them that would wake the agent.
  Action call_for_undelivered() { return data_.undelivered != 0 ? call() : Action::none; }

  void tell(State state, std::uint64_t ask_at_ns) {
    data_.state = state;
    data_.ask_at_ns = has_agent() && data_.undelivered != 0 ? std::min(ask_at_ns, data_.due_ns) : ask_at_ns;
  }
  // The agent has looked, and may have missed them, for a thread was at their link.
  void pace_undelivered(std::uint64_t now_ns) {
    if (std::exchange(data_.has_more_undelivered, false)) {
      data_.due_ns = now_ns;
      data_.gap_ns = pace_.ask_again_after_ns;
    } else if (data_.undelivered != 0 && now_ns >= data_.due_ns) {
      data_.due_ns = now_ns + data_.gap_ns;
      data_.gap_ns = std::min(2 * data_.gap_ns, pace_.longest_gap_ns);
    }
  }

  Data data_;
  Pace pace_;
};

}  // namespace farsum::link
