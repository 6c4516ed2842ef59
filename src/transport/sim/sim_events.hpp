// Virtual time: events wait in one queue and run one at a time, by time and, at the same time, in an order drawn from
// the seed. Every event that runs is mixed into a hash, so that two runs can be compared without keeping them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum {

enum class SimEventKind : std::uint8_t {
  call,           // a function given to SimWorld
  request_comes,  // peer's request `detail` reaches this rank
  reply_comes,    // peer's reply to request `detail` reaches this rank
  agent_turn,
  origin_turn,
  copy_first,  // transfer `detail`: the first half of a torn one
  copy_rest,
  transfer_ends,
  letter_comes,  // peer's next letter reaches this rank
};

const char* name_of(SimEventKind kind);

struct SimEvent {
  SimEventKind kind = SimEventKind::call;
  Rank rank = 0;
  Rank peer = 0;
  std::uint64_t detail = 0;
};

struct SimTraceLine {
  SimTime at_ns = 0;
  SimEvent event;
  std::string text() const;
};

class SimEventSink {
 public:
  virtual ~SimEventSink() = default;
  virtual void on_event(const SimEvent& event) = 0;
};

class SimEventQueue {
 public:
  SimEventQueue(SimRandom random, bool record_trace) : random_(random), record_trace_(record_trace) {}

  SimTime now_ns() const { return now_ns_; }
  // `at_ns` in the past means now.
  void schedule_at(SimTime at_ns, SimEventSink& sink, const SimEvent& event);
  // Runs the next event; false when there is none.
  bool step();

  std::uint64_t event_count() const { return event_count_; }
  std::uint64_t trace_hash() const { return trace_hash_; }
  const std::vector<SimTraceLine>& trace() const { return trace_; }
  void note(std::uint64_t value) { trace_hash_ = SimRandom::mix(trace_hash_ ^ SimRandom::mix(value + 1)); }

 private:
  struct Waiting {
    SimTime at_ns;
    std::uint64_t tie;  // random above, a serial number below: a total order
    SimEventSink* sink;
    SimEvent event;
  };
  static bool is_later(const Waiting& one, const Waiting& other) {
    return one.at_ns != other.at_ns ? one.at_ns > other.at_ns : one.tie > other.tie;
  }

  SimRandom random_;
  bool record_trace_;
  SimTime now_ns_ = 0;
  std::uint32_t serial_ = 0;
  std::uint64_t event_count_ = 0;
  std::uint64_t trace_hash_ = 0;
  std::vector<Waiting> heap_;
  std::vector<SimTraceLine> trace_;
};

}  // namespace farsum
