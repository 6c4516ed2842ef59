#include "collectives/carry.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/units.hpp"
#include "collectives/fold.hpp"
#include "os/uncancelled.hpp"

namespace farsum {

Carry::Carry(const Parts& parts)
    : team_(parts.team),
      kernels_(parts.kernels),
      waiter_(parts.waiter),
      help_(parts.help),
      my_rank_(parts.my_rank),
      size_(parts.team.size()),
      ranks_(static_cast<std::uint32_t>(parts.team.places().here.size())),
      me_(parts.team.places().place_of(parts.my_rank)) {
  if (team_.places().is_one_node()) return;
  if (parts.order == ReduceOrder::ranks) {
    // Which join the ranks here is the same at any degree and length.
    const RankOrder order(team_.places(), 0, {.piece_bytes = 0, .letter_bytes = 0});
    joins_here_.assign(order.joins_here().begin(), order.joins_here().end());
  }
  if (!is_first()) return;
  parts_.resize(places * ranks_);
  lists_.emplace(team_, kernels_, parts.degree, parts.order);
  walks_.reserve(places);
  for (std::uint64_t place = 0; place < places; ++place)
    walks_.emplace_back(*lists_, parts.post, carried_team(team_.key(), place));
}

bool Carry::is_short(const CarriedCall& call) const {
  const std::size_t part = call.kind == CarriedCall::Kind::broadcast ? call.bytes() : call.part_bytes(my_rank_, size_);
  return part <= CarriedBlock::slot_bytes(ranks_) && call.answer_bytes(size_) <= CarriedBlock::answer_bytes;
}

bool Carry::is_open(std::uint64_t number) const { return place(number).calls.is_open(CarriedPlace::turn_of(number)); }

bool Carry::has_outcome(std::uint64_t number) const {
  return place(number).calls.has_ended(CarriedPlace::turn_of(number));
}

// What can fail, before the call has a number.
Status Carry::stage(CarriedRequest& request, const char* doing) {
  const CarriedCall& call = request.call;
  const std::size_t bytes = call.part_bytes(my_rank_, size_);
  if (is_short(call)) {
    request.answer_ = std::make_unique_for_overwrite<std::byte[]>(call.share_of(my_rank_, size_).bytes);
    return {};
  }
  const std::size_t whole = is_first() ? answer_in_extent(bytes) + call.answer_bytes(size_) : bytes;
  if (whole == 0) return {};
  if (Status status = help_.allocate(whole, request.own_); !status.is_ok())
    return {status.code(), std::string(doing) + ": " + std::string(status.text())};
  copy_carried(help_.reach(request.own_) + part_in_extent(), request.mine, bytes);
  return {};
}

Status Carry::begin(const std::shared_ptr<CarriedRequest>& request, std::uint64_t calls_before, const char* doing) {
  // Whoever rings or sends may meet a point where a thread is cancelled, here and below.
  const os::Uncancelled uncancelled;
  if (const auto found = broken().found()) return told(doing, my_rank_, {}, *found);
  request->said_ = said_of(request->call, calls_before);
  if (Status status = stage(*request, doing); !status.is_ok()) return status;
  try {
    if (hold([&] { queue_up(request); })) advance();
  } catch (...) {
    if (request->own_.bytes != 0) help_.release(std::exchange(request->own_, {}));
    // What has become whole before is begun nevertheless.
    advance();
    throw;
  }
  while (walk()) advance();
  return {};
}

// With the mutex held.
void Carry::queue_up(const std::shared_ptr<CarriedRequest>& request) {
  (void)advance_queue();
  const std::size_t bytes = request->call.part_bytes(my_rank_, size_);
  if ((!queue_.empty() || !is_open(begun_)) && is_short(request->call)) {
    request->staged_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    copy_carried(request->staged_.get(), request->mine, bytes);
  }
  queue_.push_back(request);
  request->number_ = begun_++;
  open_requests_.fetch_add(1, std::memory_order_relaxed);
  help_.count_under_way(1);
  (void)advance_queue();
  request->mine = nullptr;
}

// Does something with the mutex held, and begins what became whole by it. Whether there was any: then more may be
// entered.
template <class Work>
bool Carry::hold(const Work& work) {
  std::unique_lock lock(mutex_);
  work();
  return begin_whole(std::move(lock));
}

// Folding takes long, and others of this process have to go on meanwhile.
bool Carry::begin_whole(std::unique_lock<std::mutex> lock) {
  const Whole whole = std::exchange(whole_, {});
  lock.unlock();
  // Acquire and release: either this sees that the agent has found the mutex held, or the agent sees it free.
  if (is_turned_away_.exchange(0, std::memory_order_acq_rel) != 0) help_.ring(me_);
  for (std::uint32_t i = 0; i < whole.count; ++i) compare_and_begin(whole.numbers[i]);
  return whole.count != 0;
}

void Carry::advance() {
  while (hold([this] { (void)advance_queue(); })) {
  }
}

// The same by the agent, which never waits for a thread of the program: whoever holds the mutex rings it. Whether
// something has changed.
bool Carry::try_to_advance() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    is_turned_away_.exchange(1, std::memory_order_acq_rel);
    if (!lock.try_lock()) return false;
  }
  const bool has_changed = advance_queue();
  return begin_whole(std::move(lock)) || has_changed;
}

// With the mutex held. Whether something has changed: calls of the queue are entered, and what of this rank's keeps
// others from entering theirs is fetched.
bool Carry::advance_queue() {
  bool has_changed = false;
  for (;;) {
    const bool has_fetched = fetch_wanted();
    const bool has_entered = enter_next();
    if (!has_fetched && !has_entered) return has_changed;
    has_changed = true;
  }
}

bool Carry::enter_next() {
  if (queue_.empty()) return false;
  const std::uint64_t number = queue_.front()->number_;
  if (!is_open(number)) {
    CarriedPlace& taken = place(number);
    // Whoever closes the place, or concludes its call, does that first and then reads this word by changing it: either
    // the change is seen here, or this one there. The mark stays in a place that has opened meanwhile, and rings once
    // in vain.
    const bool was_wanted = taken.wanted.exchange(1, std::memory_order_acq_rel) != 0;
    if (!is_open(number)) {
      const bool has_answer = has_outcome(number - places);
      if (!was_wanted && has_answer) ring_others();
      return !was_wanted && has_answer;
    }
  }
  enter(queue_.front());
  queue_.pop_front();
  return true;
}

void Carry::enter(const std::shared_ptr<CarriedRequest>& request) {
  const std::uint64_t number = request->number_;
  const CarriedCall& call = request->call;
  const std::size_t bytes = call.part_bytes(my_rank_, size_);
  CarriedPart& mine = part(number, me_);
  mine = {};
  mine.said = request->said_;
  if (is_short(call)) {
    copy_carried(slot(number, me_), request->staged_ ? request->staged_.get() : request->mine, bytes);
    request->staged_.reset();
  } else {
    mine.data_at = request->own_.offset + part_in_extent();
    if (is_first()) {
      mine.extent_at = request->own_.offset;
      mine.extent_bytes = request->own_.bytes;
      mine.answer_at = request->own_.offset + answer_in_extent(bytes);
    }
  }
  request->state_ = CarriedRequest::State::entered;
  entered_[number % places] = request;
  if (place(number).calls.come(ranks_)) whole_.numbers[whole_.count++] = number;
}

// By the last to come, without the mutex: nobody goes from the call before it has ended.
void Carry::compare_and_begin(std::uint64_t number) {
  CarriedPlace& here = place(number);
  here.found = compare(number);
  const CarriedCall call = call_in(part(number, me_).said).value_or(CarriedCall{});
  if (here.found.what == CarriedFinding::What::the_same && !is_short(call) && !reach_all(number, call))
    here.found = {my_rank_, CarriedFinding::What::lacks_memory, {}, {}};
  const std::size_t bytes = here.found.what == CarriedFinding::What::the_same ? bytes_to_fold(call) : 0;
  const std::uint64_t slices = (bytes + slice_bytes - 1) / slice_bytes;
  // Relaxed: published by what is offered.
  here.lacking.store(0, std::memory_order_relaxed);
  here.calls.offer(CarriedPlace::turn_of(number), slices);
  if (slices == 0) return end_fold(number);
  fold_slice(number);
  if (slices == 1) return;
  // Those that wait fold, too.
  here.events.notify_all();
  help_.ring(0);
}

CarriedFinding Carry::compare(std::uint64_t number) const {
  const SaidOfCall& first = part(number, 0).said;
  for (std::uint32_t member = 1; member < ranks_; ++member) {
    const SaidOfCall& said = part(number, member).said;
    if (said != first)
      return {team_.places().here[member], CarriedFinding::What::another_call, said, first, team_.places().here[0]};
  }
  return {};
}

bool Carry::reach_all(std::uint64_t number, const CarriedCall& call) const {
  for (std::uint32_t member = 0; member < ranks_; ++member) {
    const std::size_t bytes = call.part_bytes(team_.places().here[member], size_);
    if (bytes != 0 && data_of(number, member, bytes) == nullptr) return false;
  }
  return answer_of(number, call) != nullptr;
}

// Null where there is no room to map it.
std::byte* Carry::data_of(std::uint64_t number, std::uint32_t member, std::size_t bytes) const {
  const CarriedPart& theirs = part(number, member);
  return theirs.data_at == 0 ? slot(number, member) : help_.reach({theirs.data_at, bytes});
}

std::byte* Carry::answer_of(std::uint64_t number, const CarriedCall& call) const {
  const CarriedPart& first = part(number, 0);
  if (first.answer_at != 0) return help_.reach({first.answer_at, call.answer_bytes(size_)});
  return block_ + CarriedBlock::answers_at(ranks_) + number % places * CarriedBlock::answer_bytes;
}

// What ranks of this node bring becomes part of the answer: of what they gather or broadcast it is copied.
std::size_t Carry::bytes_to_fold(const CarriedCall& call) const {
  if (call.kind == CarriedCall::Kind::allgather) return call.bytes() * ranks_;
  if (call.kind == CarriedCall::Kind::broadcast) return team_.places().is_here(call.root) ? call.bytes() : 0;
  return call.answer_bytes(size_);
}

// False: no slice of the call is left, or there was none.
bool Carry::fold_slice(std::uint64_t number) {
  return fold_taken(number % places, place(number).calls.take_slice(CarriedPlace::turn_of(number)));
}

bool Carry::fold_taken(std::uint64_t of_place, const std::optional<CallPlace::Slice>& slice) {
  if (!slice) return false;
  CarriedPlace& here = place(of_place);
  const std::uint64_t number = slice->call * places + of_place;
  // Relaxed: published by the end of the slice.
  if (!fold(number, slice->index)) here.lacking.store(my_rank_ + 1, std::memory_order_relaxed);
  if (here.calls.end_slice()) end_fold(number);
  return true;
}

// False: this process has no room to map what is to be folded.
bool Carry::fold(std::uint64_t number, std::uint64_t slice) const {
  const CarriedCall call = call_in(part(number, 0).said).value_or(CarriedCall{});
  if (!is_short(call) && !reach_all(number, call)) return false;
  std::byte* const answer = answer_of(number, call);
  const std::size_t from = slice * slice_bytes;
  const std::size_t bytes = std::min(slice_bytes, bytes_to_fold(call) - from);
  const auto data = [&](std::uint32_t member) {
    return data_of(number, member, call.part_bytes(team_.places().here[member], size_));
  };
  if (call.reduces_by_ranks() && !team_.places().is_one_node()) {
    fold_by_ranks(number, call, from, bytes);
  } else if (call.reduces()) {
    Fold(kernels_, call.type, call.op, call.order).all(answer + from, bytes, ranks_, [&](std::uint32_t member) {
      return data(member) + from;
    });
  } else if (call.kind == CarriedCall::Kind::broadcast) {
    copy_carried(answer + from, data(team_.places().place_of(call.root)) + from, bytes);
  } else {
    const std::size_t length = call.bytes();
    for (std::size_t done = 0; done < bytes;) {
      const auto member = static_cast<std::uint32_t>((from + done) / length);
      const std::size_t within = (from + done) % length;
      const std::size_t part = std::min(length - within, bytes - done);
      copy_carried(answer + team_.places().here[member] * length + within, data(member) + within, part);
      done += part;
    }
  }
  return true;
}

// Over several nodes: what ranks here bring becomes that of the aligned blocks of them that are left, in their places.
void Carry::fold_by_ranks(std::uint64_t number, const CarriedCall& call, std::size_t from, std::size_t bytes) const {
  const Fold fold(kernels_, call.type, call.op);
  const auto data = [&](std::uint32_t rank) {
    return data_of(number, team_.places().place_of(rank), call.part_bytes(rank, size_)) + from;
  };
  for (const RankOrder::Join& join : joins_here_) fold.one_more(data(join.left), data(join.right), bytes);
}

// This node's part of the call is whole.
void Carry::end_fold(std::uint64_t number) {
  CarriedPlace& here = place(number);
  const std::uint32_t lacking = here.lacking.load(std::memory_order_relaxed);
  if (lacking != 0) here.found = {lacking - 1, CarriedFinding::What::lacks_memory, {}, {}};
  if (team_.places().is_one_node()) return conclude(number);
  // Release pairs with the acquire in walk_place().
  here.is_folded.store(CarriedPlace::tag_of(number), std::memory_order_release);
  // The first rank's own process walks when it has left what it does here.
  if (!is_first()) help_.ring(0);
}

void Carry::conclude(std::uint64_t number) {
  CarriedPlace& here = place(number);
  here.calls.end(CarriedPlace::turn_of(number));
  here.events.notify_all();
  if (walks()) waiter_.own_events().notify_all();
  // See enter_next().
  if (here.wanted.fetch_add(0, std::memory_order_acq_rel) != 0) ring_others();
}

// By who walks, before it ends the call. Whoever waits for any call looks again.
void Carry::break_group(const CarriedFinding& found) {
  broken().set(found);
  for (std::uint64_t at = 0; at < places; ++at) place(at).events.notify_all();
  waiter_.own_events().notify_all();
}

// With the mutex held: a call of a broken group, to which others may not come any more. They may read what it brings.
void Carry::abandon(CarriedRequest& request, const CarriedFinding& found) {
  if (request.state_ == CarriedRequest::State::entered)
    entered_[request.number_ % places].reset();
  else
    std::erase_if(queue_, [&](const std::shared_ptr<CarriedRequest>& one) { return one.get() == &request; });
  request.found_ = found;
  request.state_ = CarriedRequest::State::fetched;
  help_.count_under_way(-1);
}

void Carry::ring_others() const {
  for (std::uint32_t member = 0; member < ranks_; ++member)
    if (member != me_) help_.ring(member);
}

// With the mutex held.
bool Carry::fetch_wanted() {
  bool has_fetched = false;
  for (std::uint64_t at = 0; at < places; ++at) {
    const CarriedRequest* const request = entered_[at].get();
    if (request == nullptr || !has_outcome(request->number_)) continue;
    // Relaxed: who sets it rings this agent then.
    if (place(at).wanted.load(std::memory_order_relaxed) == 0) continue;
    fetch(at);
    has_fetched = true;
  }
  return has_fetched;
}

// With the mutex held: what this rank gets of a call that is over goes into memory of the library, or into its keeping.
void Carry::fetch(std::uint64_t of_place) {
  const std::shared_ptr<CarriedRequest> request = std::move(entered_[of_place]);
  const std::uint64_t number = request->number_;
  CarriedPlace& left = place(number);
  request->found_ = left.found;
  const CarriedPart& first = part(number, 0);
  request->all_ = {first.extent_at, first.extent_bytes};
  request->answer_at_ = first.answer_at;
  if (request->found_.what == CarriedFinding::What::the_same && is_short(request->call)) {
    const CarriedCall::Share share = request->call.share_of(my_rank_, size_);
    copy_carried(request->answer_.get(), answer_of(number, request->call) + share.from, share.bytes);
  }
  request->state_ = CarriedRequest::State::fetched;
  help_.count_under_way(-1);
  if (left.calls.go(ranks_)) close(left);
}

void Carry::close(CarriedPlace& left) {
  left.calls.open_next();
  left.events.notify_all();
  // See enter_next().
  if (left.wanted.exchange(0, std::memory_order_acq_rel) != 0) ring_others();
}

// Whether a call has ended by it. Nothing is thrown here: what was, would leave the claim held and the node standing.
bool Carry::walk() noexcept {
  if (!walks() || !walking_.try_claim()) return false;
  bool has_ended = false;
  bool awaits_answers = false;
  do {
    bool is_refused = false;
    for (std::uint64_t at = 0; at < places; ++at) {
      has_ended |= walk_place(at);
      is_refused |= !walks_[at].is_over() && walks_[at].has_refused();
      awaits_answers |= walks_[at].take_awaits_answers();
    }
    // Relaxed: the agent is rung behind it, and tries again for as long as it is so.
    if (!is_refused_.exchange(is_refused, std::memory_order_relaxed) && is_refused) help_.ring(0);
  } while (!walking_.release());
  if (awaits_answers) help_.hand_over();
  return has_ended;
}

// With the claim held.
bool Carry::walk_place(std::uint64_t of_place) {
  CarriedPlace& here = place(of_place);
  // Acquire pairs with the release in end_fold(), of which each is followed by a walk.
  const std::uint64_t tag = here.is_folded.load(std::memory_order_acquire);
  CarriedWalk& walk = walks_[of_place];
  const std::uint64_t number = (tag - 1) * places + of_place;
  if (tag == 0 || (tag == walked_[of_place] && walk.is_over())) return false;
  if (tag != walked_[of_place]) {
    walked_[of_place] = tag;
    if (const auto found = broken().found()) {
      here.found = *found;
      conclude(number);
      return true;
    }
    const SaidOfCall& said = part(number, 0).said;
    const CarriedCall call = call_in(said).value_or(CarriedCall{});
    if (here.found.what == CarriedFinding::What::the_same && !reach_parts(number, call))
      here.found = {my_rank_, CarriedFinding::What::lacks_memory, {}, {}};
    walk.begin(said, my_rank_, size_, answer_of(number, call), here.found,
               std::span(parts_).subspan(of_place * ranks_, ranks_));
  }
  if (!walk.go_on()) return false;
  if (here.found.breaks_group() && !broken().found()) break_group(here.found);
  conclude(number);
  return true;
}

// What the walk reads of each rank here where ranks decide the order. False: this process has no room to map it.
bool Carry::reach_parts(std::uint64_t number, const CarriedCall& call) {
  if (!call.reduces_by_ranks()) return true;
  for (std::uint32_t member = 0; member < ranks_; ++member) {
    const std::size_t bytes = call.part_bytes(team_.places().here[member], size_);
    const std::byte* const data = bytes == 0 ? nullptr : data_of(number, member, bytes);
    if (bytes != 0 && data == nullptr) return false;
    parts_[number % places * ranks_ + member] = data;
  }
  return true;
}

// Goes on with what can be gone on with, and looks whether the call is over. Of threads that look at one call, one
// finds it so.
Carry::Seen Carry::look(CarriedRequest& request) {
  const os::Uncancelled uncancelled;
  for (;;) {
    Seen seen = Seen::under_way;
    const bool has_begun = hold([&] { seen = look_with_mutex(request); });
    if (seen == Seen::of_another_thread) {
      if (has_begun) advance();
      while (walk()) advance();
      return seen;
    }
    // Whether this call is over or not: what has been entered above may be whole, and nobody else was told of it.
    const bool has_ended = walk();
    if (has_begun || has_ended || (seen == Seen::under_way && fold_slice(request.number_))) continue;
    return seen == Seen::over ? claim(request) : seen;
  }
}

Carry::Seen Carry::look_with_mutex(CarriedRequest& request) {
  (void)advance_queue();
  // Asked before the outcome: that of a call which has ended otherwise is there before the group is broken.
  const auto found = broken().found();
  if (request.state_ == CarriedRequest::State::entered && has_outcome(request.number_)) {
    fetch(request.number_ % places);
    (void)advance_queue();
  }
  if (request.state_ == CarriedRequest::State::taken_over) return Seen::of_another_thread;
  if (request.state_ != CarriedRequest::State::fetched && found) abandon(request, *found);
  // What is over already is looked at once more where the walk has ended another call.
  return request.state_ == CarriedRequest::State::fetched ? Seen::over : Seen::under_way;
}

Carry::Seen Carry::claim(CarriedRequest& request) {
  auto before = CarriedRequest::State::queued;
  (void)hold([&] { before = std::exchange(request.state_, CarriedRequest::State::taken_over); });
  return before == CarriedRequest::State::fetched ? Seen::over : Seen::of_another_thread;
}

Status Carry::test(CarriedRequest& request, bool& is_over, const char* doing) {
  const Seen seen = look(request);
  is_over = seen == Seen::over;
  return seen == Seen::under_way ? waiter_.looked_in_vain(doing) : end(request, seen, doing);
}

// The first rank of each of several nodes sleeps where what comes by requests wakes it, and whoever ends the call.
Status Carry::wait(CarriedRequest& request, bool& is_over, const char* doing) {
  EventCount& events = walks() ? waiter_.own_events() : place(request.number_).events;
  Seen seen = Seen::under_way;
  // It may be asked again when it has said so.
  const auto is_done = [&] { return seen != Seen::under_way || (seen = look(request)) != Seen::under_way; };
  Status status = waiter_.wait(events, is_done, doing);
  is_over = seen == Seen::over;
  return seen == Seen::under_way ? std::move(status) : end(request, seen, doing);
}

Status Carry::end(CarriedRequest& request, Seen seen, const char* doing) {
  if (seen == Seen::over) return take_over(request, doing);
  return {Code::handle, std::string(doing) + ": another thread has completed the request"};
}

// By a thread of the program, when the call has been fetched: what it gets becomes its result.
Status Carry::take_over(CarriedRequest& request, const char* doing) {
  const CarriedCall::Share share = request.call.share_of(my_rank_, size_);
  Status status = told(doing, my_rank_, request.said_, request.found_);
  if (status.is_ok() && share.bytes != 0) {
    const std::byte* const from =
        is_short(request.call) ? request.answer_.get() : help_.reach({request.answer_at_ + share.from, share.bytes});
    if (from == nullptr)
      status = told(doing, my_rank_, request.said_, {my_rank_, CarriedFinding::What::lacks_memory, {}, {}});
    else
      copy_carried(request.result, from, share.bytes);
  }
  let_go(request);
  // Release pairs with the acquire in open_requests(): from here on another thread may free the group.
  open_requests_.fetch_sub(1, std::memory_order_release);
  return status;
}

// Of a broken group nobody knows who has fetched what. The first rank has the word by the time that the outcome of a
// call is there which another one has given up, for both come from the same walk.
void Carry::let_go(CarriedRequest& request) {
  count_fetched_again();
  if (request.found_.breaks_group() || (is_first() && broken().found())) return keep(kept_, request.own_);
  if (!is_first() && request.own_.bytes != 0) help_.release(request.own_);
  if (count_fetched(request.all_)) return;
  keep(uncounted_, request.all_);
  // Relaxed: what it tells of is guarded.
  has_uncounted_.store(true, std::memory_order_relaxed);
}

// Where there is no memory to remember it, it stays allocated for good.
void Carry::keep(std::vector<CarriedExtent>& among, const CarriedExtent& extent) {
  if (extent.bytes == 0) return;
  const std::lock_guard lock(keeping_);
  try {
    among.push_back(extent);
  } catch (const std::bad_alloc&) {
  }
}

// False where its head cannot be mapped here now.
bool Carry::count_fetched(const CarriedExtent& all) {
  if (all.bytes == 0) return true;
  std::byte* const head = help_.reach({all.offset, sizeof(CarriedExtentHead)});
  if (head == nullptr) return false;
  // Acquire and release: the last comes after all have copied what they get.
  auto& fetched = reinterpret_cast<CarriedExtentHead*>(head)->fetched;
  if (fetched.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) help_.release(all);
  return true;
}

void Carry::count_fetched_again() {
  if (!has_uncounted_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(keeping_);
  std::erase_if(uncounted_, [this](const CarriedExtent& all) { return count_fetched(all); });
  has_uncounted_.store(!uncounted_.empty(), std::memory_order_relaxed);
}

void Carry::give_back_kept() {
  count_fetched_again();
  const std::lock_guard lock(keeping_);
  for (const CarriedExtent& extent : kept_) help_.release(extent);
  kept_.clear();
}

Carry::Turn Carry::take_turn(Folding folding) noexcept {
  const os::Uncancelled uncancelled;
  Turn turn;
  for (std::uint64_t at = 0; at < places && is_first() && folding == Folding::done; ++at)
    turn.is_unfinished |= fold_taken(at, place(at).calls.take_slice());
  bool has_ended = false;
  do {
    has_ended = walk();
    has_ended |= try_to_advance();
  } while (has_ended);
  turn.is_refused = is_refused_.load(std::memory_order_relaxed);
  return turn;
}

}  // namespace farsum
