#include "task_counter.hpp"

namespace fock {

TaskCounter::TaskCounter(Job& job, apps::CounterKind kind, std::uint64_t limit) : job_(job), limit_(limit) {
  require(counter_.create(kind, 0, limit));
}

TaskCounter::~TaskCounter() {
  if (!is_unwinding()) static_cast<void>(counter_.free());
}

std::uint64_t TaskCounter::next() {
  Activity& activity = job_.activity();
  const Timed timed(activity.counter_s);
  std::uint64_t ticket = 0;
  require(counter_.next(&ticket));
  ++activity.tickets;
  return ticket;
}

void TaskCounter::reset() {
  const Timed timed(job_.activity().wait_s);
  require(counter_.reset());
}

}  // namespace fock
