// A descriptor that is readable while another one is, unless it is closed: who sleeps on it can be left asleep by
// another thread, without being woken for that, and for a while only. Owner: os.
#pragma once

#include <cstdint>

#include "base/status.hpp"

namespace farsum::os {

// One thread at a time opens and closes it; others may sleep on it meanwhile.
class EventGate {
 public:
  EventGate() = default;
  // Before `descriptor`, which stays open as long as the gate is there. The gate is open.
  static Result<EventGate> before(int descriptor);
  EventGate(EventGate&& other) noexcept;
  EventGate& operator=(EventGate&& other) noexcept;
  ~EventGate();

  // Negative where there is no gate.
  int descriptor() const { return gate_; }
  // It is not readable for so long, whatever the descriptor behind it is; then it is, until it is opened, or closed
  // anew.
  void close_for(std::uint64_t duration_ns);
  // Wakes its sleepers where the descriptor behind it is readable.
  void open();

 private:
  void let_through(unsigned events) const;
  void set_timer(std::uint64_t duration_ns) const;

  int gate_ = -1;
  int timer_ = -1;
  int behind_ = -1;
  bool is_closed_ = false;
};

}  // namespace farsum::os
