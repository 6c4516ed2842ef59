#include "task_counter.hpp"

namespace fock {

TaskCounter::TaskCounter(Job& job, farsum_counter_kind kind, std::uint64_t limit) : job_(job), limit_(limit) {
  farsum_counter_options options{};
  options.struct_bytes = sizeof options;
  options.kind = kind;
  options.home = 0;
  options.limit = kind == FARSUM_COUNTER_LEASED ? limit : 0;
  require(farsum_counter_create(farsum_world(), &options, &counter_));
}

TaskCounter::~TaskCounter() {
  if (!is_unwinding()) static_cast<void>(farsum_counter_free(&counter_));
}

std::uint64_t TaskCounter::next() {
  Activity& activity = job_.activity();
  const Timed timed(activity.counter_s);
  std::uint64_t ticket = 0;
  require(farsum_counter_next(counter_, &ticket));
  ++activity.tickets;
  return ticket;
}

void TaskCounter::reset() {
  const Timed timed(job_.activity().wait_s);
  require(farsum_counter_reset(counter_));
}

}  // namespace fock
