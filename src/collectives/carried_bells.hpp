// Who is told of what has become of a call, or of its place: those that sleep there, and, of a place that somebody
// wants for a later call, the agents of the node. Owner: collectives.
#pragma once

#include <cstdint>

#include "collectives/carried_memory.hpp"
#include "collectives/carry_help.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// One member's. Any thread may call.
class CarriedBells {
 public:
  CarriedBells(const CarriedMemory& memory, CarryHelp& help, Waiter& waiter)
      : memory_(memory), help_(help), waiter_(waiter), walks_(memory.is_first() && !memory.group().is_one_node()) {}

  // Where a rank sleeps until the call is over. The first rank of each of several nodes does where what comes by
  // requests wakes it, too.
  EventCount& of(std::uint64_t number) const { return walks_ ? waiter_.own_events() : memory_.place(number).events; }

  // By a rank whose next call is that one, which its place may not be open for. Whoever has the place is told that it
  // is wanted.
  enum class Room : std::uint8_t {
    open,
    taken,     // and whoever closes it, or concludes its call, rings
    to_fetch,  // what ranks have not fetched keeps it, and this one is the first to want it
  };
  Room want(std::uint64_t number);

  // The call is over, and its outcome there.
  void conclude(std::uint64_t number);
  // By the last rank to go from its call.
  void close(CarriedPlace& left);
  // By who walks, before it ends the call. Whoever waits for any call looks again.
  void break_group(const CarriedFinding& found);

 private:
  void ring_others() const;

  const CarriedMemory& memory_;
  CarryHelp& help_;
  Waiter& waiter_;
  bool walks_;
};

}  // namespace farsum
