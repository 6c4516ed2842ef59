#include "collectives/carried_bells.hpp"

namespace farsum {

CarriedBells::Room CarriedBells::want(std::uint64_t number) {
  if (memory_.is_open(number)) return Room::open;
  CarriedPlace& taken = memory_.place(number);
  // Whoever closes the place, or concludes its call, does that first and then reads this word by changing it: either
  // the change is seen here, or this one there. The mark stays in a place that has opened meanwhile, and rings once
  // in vain.
  const bool was_wanted = taken.wanted.exchange(1, std::memory_order_acq_rel) != 0;
  if (memory_.is_open(number)) return Room::open;
  if (was_wanted || !memory_.has_outcome(number - CarriedMemory::places)) return Room::taken;
  ring_others();
  return Room::to_fetch;
}

void CarriedBells::conclude(std::uint64_t number) {
  CarriedPlace& here = memory_.place(number);
  here.calls.end(CarriedPlace::turn_of(number));
  here.events.notify_all();
  if (walks_) waiter_.own_events().notify_all();
  // See want().
  if (here.wanted.fetch_add(0, std::memory_order_acq_rel) != 0) ring_others();
}

void CarriedBells::close(CarriedPlace& left) {
  left.calls.open_next();
  left.events.notify_all();
  // See want().
  if (left.wanted.exchange(0, std::memory_order_acq_rel) != 0) ring_others();
}

void CarriedBells::break_group(const CarriedFinding& found) {
  memory_.broken().set(found);
  for (std::uint64_t at = 0; at < CarriedMemory::places; ++at) memory_.place(at).events.notify_all();
  waiter_.own_events().notify_all();
}

void CarriedBells::ring_others() const {
  for (std::uint32_t member = 0; member < memory_.ranks(); ++member)
    if (member != memory_.me()) help_.ring(member);
}

}  // namespace farsum
