#include "transport/sim/sim_events.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farsum {

const char* name_of(SimEventKind kind) {
  switch (kind) {
    case SimEventKind::call:
      return "call";
    case SimEventKind::request_comes:
      return "request_comes";
    case SimEventKind::reply_comes:
      return "reply_comes";
    case SimEventKind::agent_turn:
      return "agent_turn";
    case SimEventKind::origin_turn:
      return "origin_turn";
    case SimEventKind::copy_first:
      return "copy_first";
    case SimEventKind::copy_rest:
      return "copy_rest";
    case SimEventKind::transfer_ends:
      return "transfer_ends";
    case SimEventKind::letter_comes:
      return "letter_comes";
  }
  return "unknown";
}

std::string SimTraceLine::text() const {
  return fmt::format("{:>12} ns  rank {:<4} {:<13} peer {:<4} {}", at_ns, event.rank, name_of(event.kind), event.peer,
                     event.detail);
}

void SimEventQueue::schedule_at(SimTime at_ns, SimEventSink& sink, const SimEvent& event) {
  const std::uint64_t tie = (random_.next() << 32) | serial_++;
  heap_.push_back({.at_ns = std::max(at_ns, now_ns_), .tie = tie, .sink = &sink, .event = event});
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

bool SimEventQueue::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  const Waiting next = heap_.back();
  heap_.pop_back();

  now_ns_ = next.at_ns;
  ++event_count_;
  note(now_ns_);
  note((std::uint64_t{static_cast<std::uint8_t>(next.event.kind)} << 56) ^ (std::uint64_t{next.event.rank} << 28) ^
       next.event.peer);
  note(next.event.detail);
  if (record_trace_) trace_.push_back({.at_ns = now_ns_, .event = next.event});

  next.sink->on_event(next.event);
  return true;
}

}  // namespace farsum
