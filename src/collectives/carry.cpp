#include "collectives/carry.hpp"

#include <string>
#include <utility>

#include "os/uncancelled.hpp"

namespace farsum {

Carry::Carry(const Parts& parts)
    : waiter_(parts.waiter),
      help_(parts.help),
      memory_(parts.team, parts.my_rank, parts.help),
      extents_(memory_, parts.help),
      bells_(memory_, parts.help, parts.waiter),
      folds_({memory_, bells_, parts.help, parts.kernels, parts.order}),
      queue_(memory_, bells_, parts.help) {
  if (memory_.group().is_one_node() || !memory_.is_first()) return;
  walks_.emplace(CarriedWalks::Parts{.team = parts.team,
                                     .memory = memory_,
                                     .bells = bells_,
                                     .help = parts.help,
                                     .post = parts.post,
                                     .kernels = parts.kernels,
                                     .degree = parts.degree,
                                     .order = parts.order});
}

Status Carry::begin(const std::shared_ptr<CarriedRequest>& request, std::uint64_t calls_before, const char* doing) {
  // Whoever rings or sends may meet a point where a thread is cancelled, here and below.
  const os::Uncancelled uncancelled;
  if (const auto found = memory_.broken().found()) return told(doing, memory_.my_rank(), {}, *found);
  request->said = said_of(request->call, calls_before);
  if (Status status = memory_.stage(*request, doing); !status.is_ok()) return status;
  try {
    if (begin_all(queue_.add(request))) advance();
  } catch (...) {
    if (request->own.bytes != 0) help_.release(std::exchange(request->own, {}));
    // What has become whole before is begun nevertheless.
    advance();
    throw;
  }
  while (walk()) advance();
  return {};
}

// Whether there was any: then more may be entered.
bool Carry::begin_all(const CarriedQueue::Whole& whole) {
  for (std::uint32_t i = 0; i < whole.count; ++i) folds_.begin(whole.numbers[i]);
  return whole.count != 0;
}

void Carry::advance() {
  while (begin_all(queue_.advance())) {
  }
}

// By the agent. Whether something has changed.
bool Carry::try_to_advance() {
  const std::optional<CarriedQueue::Advanced> advanced = queue_.try_to_advance();
  return advanced && (begin_all(advanced->whole) || advanced->has_changed);
}

// Goes on with what can be gone on with, and looks whether the call is over. Of threads that look at one call, one
// finds it so.
Carry::Seen Carry::look(CarriedRequest& request) {
  const os::Uncancelled uncancelled;
  for (;;) {
    const CarriedQueue::Look found = queue_.look(request);
    const bool has_begun = begin_all(found.whole);
    if (found.seen == Seen::of_another_thread) {
      if (has_begun) advance();
      while (walk()) advance();
      return found.seen;
    }
    // Whether this call is over or not: what has been entered above may be whole, and nobody else was told of it.
    const bool has_ended = walk();
    if (has_begun || has_ended || (found.seen == Seen::under_way && folds_.fold_slice(request.number))) continue;
    if (found.seen == Seen::under_way) return found.seen;
    const CarriedQueue::Look taken = queue_.take_over(request);
    begin_all(taken.whole);
    return taken.seen;
  }
}

Status Carry::test(CarriedRequest& request, bool& is_over, const char* doing) {
  const Seen seen = look(request);
  is_over = seen == Seen::over;
  return seen == Seen::under_way ? waiter_.looked_in_vain(doing) : end(request, seen, doing);
}

Status Carry::wait(CarriedRequest& request, bool& is_over, const char* doing) {
  Seen seen = Seen::under_way;
  // It may be asked again when it has said so.
  const auto is_done = [&] { return seen != Seen::under_way || (seen = look(request)) != Seen::under_way; };
  Status status = waiter_.wait(bells_.of(request.number), is_done, doing);
  is_over = seen == Seen::over;
  return seen == Seen::under_way ? std::move(status) : end(request, seen, doing);
}

Status Carry::end(CarriedRequest& request, Seen seen, const char* doing) {
  if (seen == Seen::over) return take_over(request, doing);
  return {Code::handle, std::string(doing) + ": another thread has completed the request"};
}

// By a thread of the program, when the call has been fetched: what it gets becomes its result.
Status Carry::take_over(CarriedRequest& request, const char* doing) {
  const CarriedCall::Share share = memory_.own_share(request.call);
  Status status = told(doing, memory_.my_rank(), request.said, request.found);
  if (status.is_ok() && share.bytes != 0) {
    const std::byte* const from = memory_.is_short(request.call)
                                      ? request.answer.get()
                                      : help_.reach({request.answer_at + share.from, share.bytes});
    if (from == nullptr)
      status =
          told(doing, memory_.my_rank(), request.said, {memory_.my_rank(), CarriedFinding::What::lacks_memory, {}, {}});
    else
      copy_carried(request.result, from, share.bytes);
  }
  extents_.let_go(request);
  queue_.let_go();
  return status;
}

Carry::Turn Carry::take_turn(Folding folding) noexcept {
  const os::Uncancelled uncancelled;
  Turn turn;
  for (std::uint64_t at = 0; at < CarriedMemory::places && memory_.is_first() && folding == Folding::done; ++at)
    turn.is_unfinished |= folds_.fold_slice_in(at);
  bool has_ended = false;
  do {
    has_ended = walk();
    has_ended |= try_to_advance();
  } while (has_ended);
  turn.is_refused = walks_ && walks_->is_refused();
  return turn;
}

}  // namespace farsum
