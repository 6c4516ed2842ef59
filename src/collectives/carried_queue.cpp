#include "collectives/carried_queue.hpp"

#include <utility>

namespace farsum {

CarriedQueue::Whole CarriedQueue::add(const std::shared_ptr<CarriedRequest>& request) {
  std::unique_lock lock(mutex_);
  (void)enter_and_fetch();
  const std::size_t bytes = memory_.own_bytes(request->call);
  if ((!queue_.empty() || !memory_.is_open(begun_)) && memory_.is_short(request->call)) {
    request->staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
    copy_carried(request->staged.get(), request->mine, bytes);
  }
  queue_.push_back(request);
  request->number = begun_++;
  open_requests_.fetch_add(1, std::memory_order_relaxed);
  help_.count_under_way(1);
  (void)enter_and_fetch();
  request->mine = nullptr;
  return unlock(std::move(lock));
}

// What became whole is begun without the mutex: folding takes long, and others of this process have to go on meanwhile.
CarriedQueue::Whole CarriedQueue::unlock(std::unique_lock<std::mutex> lock) {
  const Whole whole = std::exchange(whole_, {});
  lock.unlock();
  // Acquire and release: either this sees that the agent has found the mutex held, or the agent sees it free.
  if (is_turned_away_.exchange(0, std::memory_order_acq_rel) != 0) help_.ring(memory_.me());
  return whole;
}

CarriedQueue::Whole CarriedQueue::advance() {
  std::unique_lock lock(mutex_);
  (void)enter_and_fetch();
  return unlock(std::move(lock));
}

std::optional<CarriedQueue::Advanced> CarriedQueue::try_to_advance() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    is_turned_away_.exchange(1, std::memory_order_acq_rel);
    if (!lock.try_lock()) return std::nullopt;
  }
  const bool has_changed = enter_and_fetch();
  return Advanced{.whole = unlock(std::move(lock)), .has_changed = has_changed};
}

// Whether something has changed.
bool CarriedQueue::enter_and_fetch() {
  bool has_changed = false;
  for (;;) {
    const bool has_fetched = fetch_wanted();
    const bool has_entered = enter_next();
    if (!has_fetched && !has_entered) return has_changed;
    has_changed = true;
  }
}

bool CarriedQueue::enter_next() {
  if (queue_.empty()) return false;
  switch (bells_.want(queue_.front()->number)) {
    case CarriedBells::Room::open:
      enter(queue_.front());
      queue_.pop_front();
      return true;
    case CarriedBells::Room::to_fetch:
      return true;
    case CarriedBells::Room::taken:
      break;
  }
  return false;
}

void CarriedQueue::enter(const std::shared_ptr<CarriedRequest>& request) {
  const std::uint64_t number = request->number;
  memory_.leave(*request);
  request->state = CarriedRequest::State::entered;
  entered_[number % CarriedMemory::places] = request;
  if (memory_.place(number).calls.come(memory_.ranks())) whole_.numbers[whole_.count++] = number;
}

bool CarriedQueue::fetch_wanted() {
  bool has_fetched = false;
  for (std::uint64_t at = 0; at < CarriedMemory::places; ++at) {
    const CarriedRequest* const request = entered_[at].get();
    if (request == nullptr || !memory_.has_outcome(request->number)) continue;
    // Relaxed: who sets it rings this agent then.
    if (memory_.place(at).wanted.load(std::memory_order_relaxed) == 0) continue;
    fetch(at);
    has_fetched = true;
  }
  return has_fetched;
}

// What this rank gets of a call that is over goes into memory of the library, or into its keeping.
void CarriedQueue::fetch(std::uint64_t of_place) {
  const std::shared_ptr<CarriedRequest> request = std::move(entered_[of_place]);
  const std::uint64_t number = request->number;
  CarriedPlace& left = memory_.place(number);
  request->found = left.found;
  const CarriedPart& first = memory_.part(number, 0);
  request->all = {first.extent_at, first.extent_bytes};
  request->answer_at = first.answer_at;
  if (request->found.what == CarriedFinding::What::the_same && memory_.is_short(request->call)) {
    const CarriedCall::Share share = memory_.own_share(request->call);
    copy_carried(request->answer.get(), memory_.answer_of(number, request->call) + share.from, share.bytes);
  }
  request->state = CarriedRequest::State::fetched;
  help_.count_under_way(-1);
  if (left.calls.go(memory_.ranks())) bells_.close(left);
}

// A call of a broken group, to which others may not come any more. They may read what it brings.
void CarriedQueue::give_up(CarriedRequest& request, const CarriedFinding& found) {
  if (request.state == CarriedRequest::State::entered)
    entered_[request.number % CarriedMemory::places].reset();
  else
    std::erase_if(queue_, [&](const std::shared_ptr<CarriedRequest>& one) { return one.get() == &request; });
  request.found = found;
  request.state = CarriedRequest::State::fetched;
  help_.count_under_way(-1);
}

CarriedQueue::Look CarriedQueue::look(CarriedRequest& request) {
  std::unique_lock lock(mutex_);
  const Seen seen = see(request);
  return {.seen = seen, .whole = unlock(std::move(lock))};
}

CarriedQueue::Seen CarriedQueue::see(CarriedRequest& request) {
  (void)enter_and_fetch();
  // Asked before the outcome: that of a call which has ended otherwise is there before the group is broken.
  const auto found = memory_.broken().found();
  if (request.state == CarriedRequest::State::entered && memory_.has_outcome(request.number)) {
    fetch(request.number % CarriedMemory::places);
    (void)enter_and_fetch();
  }
  if (request.state == CarriedRequest::State::taken_over) return Seen::of_another_thread;
  if (request.state != CarriedRequest::State::fetched && found) give_up(request, *found);
  // What is over already is looked at once more where the walk has ended another call.
  return request.state == CarriedRequest::State::fetched ? Seen::over : Seen::under_way;
}

CarriedQueue::Look CarriedQueue::take_over(CarriedRequest& request) {
  std::unique_lock lock(mutex_);
  const auto before = std::exchange(request.state, CarriedRequest::State::taken_over);
  const Seen seen = before == CarriedRequest::State::fetched ? Seen::over : Seen::of_another_thread;
  return {.seen = seen, .whole = unlock(std::move(lock))};
}

}  // namespace farsum
