#include "transport/sim/sim_rdma.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/sim/sim_card.hpp"

namespace farsum {

// ---- the owner ----

Result<CardMemory> SimRdma::expose(std::byte* memory, std::uint64_t bytes) {
  if (memory == nullptr) {
    const std::uint64_t room = round_up(std::max<std::uint64_t>(bytes, 1), page_bytes);
    memory = static_cast<std::byte*>(std::aligned_alloc(page_bytes, room));
    std::memset(memory, 0, room);
    made_.emplace(memory, memory);
  }
  const Extent extent{reinterpret_cast<std::uintptr_t>(memory), bytes};
  CardMemory exposed{memory, bytes, std::vector<std::byte>(sizeof extent)};
  std::memcpy(exposed.key.data(), &extent, sizeof extent);
  return exposed;
}

void SimRdma::conceal(const CardMemory& memory) { made_.erase(memory.memory); }

// ---- the origin ----

Rdma::Reached SimRdma::reach(Rank peer, std::span<const std::byte> key) {
  Part part{peer, {}};
  if (key.size() == sizeof part.extent) std::memcpy(&part.extent, key.data(), sizeof part.extent);
  reached_.emplace(next_reached_, part);
  return next_reached_++;
}

Status SimRdma::check(Reached memory, std::uint64_t address, std::uint64_t bytes, Rank& peer) const {
  if (is_over_) return {Code::peer_failed, "the job is over"};
  const auto found = reached_.find(memory);
  if (found == reached_.end()) return {Code::argument, "no such memory is reached"};
  const Extent& extent = found->second.extent;
  peer = found->second.peer;
  if (address >= extent.address && address - extent.address <= extent.bytes &&
      bytes <= extent.bytes - (address - extent.address))
    return {};
  return {extent.address == 0 ? Code::argument : Code::range,
          fmt::format("the key of rank {} does not hold for {} bytes at {:#x}", peer, bytes, address)};
}

SimRdma::CourseRef SimRdma::begin(CardCompletion* completion) {
  auto course = std::make_shared<Course>(Course{next_course_++, completion, false});
  if (completion != nullptr) completion->pending.fetch_add(1);
  courses_.insert(course);
  return course;
}

void SimRdma::start(Rank peer, const CourseRef& course, std::function<void()> run) {
  Peer& state = peers_[peer];
  state.under_way.insert(course->number);
  if (!state.behind_fences.empty()) {
    state.behind_fences.push_back({course, std::move(run)});
    return;
  }
  state.started.insert(course->number);
  run();
}

// The origin's own side is over.
void SimRdma::tell(const CourseRef& course, Code code) {
  CardCompletion* const completion = std::exchange(course->completion, nullptr);
  if (course->is_abandoned || completion == nullptr) return;
  if (code != Code::ok) completion->failure.store(code);
  completion->pending.fetch_sub(1);
}

// It has taken effect, or never will.
void SimRdma::end(Rank peer, const CourseRef& course, Code code) {
  courses_.erase(course);
  if (course->is_abandoned) return;
  if (code != Code::ok) peers_[peer].is_lost = true;
  peers_[peer].under_way.erase(course->number);
  peers_[peer].started.erase(course->number);
  go_on(peer);
}

void SimRdma::go_on(Rank peer) {
  Peer& state = peers_[peer];
  const std::uint64_t first = state.under_way.empty() ? next_course_ : *state.under_way.begin();
  std::vector<Flush> over;
  std::erase_if(state.flushes, [&](const Flush& flush) {
    if (flush.before > first) return false;
    over.push_back(flush);
    return true;
  });
  for (const Flush& flush : over) {
    world_.call_at_rank(rank_, latency(), [this, course = flush.course, is_lost = state.is_lost] {
      tell(course, is_lost ? Code::peer_failed : Code::ok);
      courses_.erase(course);
    });
  }
  if (!state.started.empty() || state.behind_fences.empty()) return;
  state.behind_fences.pop_front();
  while (!state.behind_fences.empty() && state.behind_fences.front().run) {
    const Step step = std::move(state.behind_fences.front());
    state.behind_fences.pop_front();
    state.started.insert(step.course->number);
    step.run();
  }
}

// Copies in two halves, at two instants.
void SimRdma::copy(Rank peer, std::byte* to, const std::byte* from, std::uint64_t bytes,
                   std::function<void(Code)> then) {
  const std::uint64_t half = bytes / 2;
  if (!world_.is_alive(peer)) return then(Code::peer_failed);
  if (bytes == 0) return then(Code::ok);
  std::memmove(to, from, half);
  world_.call_after(latency(), [this, peer, to, from, bytes, half, then = std::move(then)] {
    if (!world_.is_alive(peer)) return then(Code::peer_failed);
    std::memmove(to + half, from + half, bytes - half);
    then(Code::ok);
  });
}

Status SimRdma::put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
                    CardCompletion& completion) {
  Rank peer = 0;
  if (Status status = check(memory, address, from.size(), peer); !status.is_ok()) return status;
  const CourseRef course = begin(&completion);
  start(peer, course, [this, peer, address, from, course] {
    world_.call_after(latency(), [this, peer, address, from, course] {
      if (course->is_abandoned) return;
      // The bytes are on the wire from here on.
      auto sent = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
      world_.call_at_rank(rank_, 0, [this, course] { tell(course, Code::ok); });
      world_.call_after(latency(), [this, peer, address, sent, course] {
        copy(peer, reinterpret_cast<std::byte*>(address), sent->data(), sent->size(),
             [this, peer, sent, course](Code code) { end(peer, course, code); });
      });
    });
  });
  return {};
}

Status SimRdma::get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) {
  Rank peer = 0;
  if (Status status = check(memory, address, into.size(), peer); !status.is_ok()) return status;
  const CourseRef course = begin(&completion);
  start(peer, course, [this, peer, address, into, course] {
    world_.call_after(latency(), [this, peer, address, into, course] {
      auto read = std::make_shared<std::vector<std::byte>>(into.size());
      copy(peer, read->data(), reinterpret_cast<const std::byte*>(address), into.size(),
           [this, peer, into, read, course](Code code) {
             world_.call_at_rank(rank_, latency(), [this, peer, into, read, course, code] {
               if (!course->is_abandoned && code == Code::ok && !into.empty())
                 std::memcpy(into.data(), read->data(), into.size());
               tell(course, code);
               end(peer, course, code);
             });
           });
    });
  });
  return {};
}

namespace {

std::uint64_t updated(CardUpdate update, std::uint64_t old, std::uint64_t operand, std::uint64_t compare) {
  switch (update) {
    case CardUpdate::add:
      return old + operand;
    case CardUpdate::bit_and:
      return old & operand;
    case CardUpdate::bit_or:
      return old | operand;
    case CardUpdate::bit_xor:
      return old ^ operand;
    case CardUpdate::swap:
      return operand;
    case CardUpdate::compare_and_swap:
      return old == compare ? operand : old;
  }
  return old;
}

}  // namespace

void SimRdma::change(Rank peer, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
                     std::byte* result, const CourseRef& course) {
  start(peer, course, [this, peer, word, update, operand, compare, result, course] {
    world_.card(peer).update(
        rank_, reinterpret_cast<std::byte*>(word.address), word.bytes,
        [update, operand, compare](std::uint64_t old) { return updated(update, old, operand, compare); },
        [this, peer, word, result, course](Code code, std::uint64_t old) {
          if (!course->is_abandoned && result != nullptr && code == Code::ok) std::memcpy(result, &old, word.bytes);
          tell(course, code);
          end(peer, course, code);
        });
  });
}

Status SimRdma::update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) {
  Rank peer = 0;
  if (Status status = check(memory, word.address, word.bytes, peer); !status.is_ok()) return status;
  change(peer, word, update, operand, 0, nullptr, begin(nullptr));
  return {};
}

Status SimRdma::fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
                      std::byte* result, CardCompletion& completion) {
  Rank peer = 0;
  if (Status status = check(memory, word.address, word.bytes, peer); !status.is_ok()) return status;
  change(peer, word, update, operand, compare, result, begin(&completion));
  return {};
}

Status SimRdma::fence(Rank peer) {
  Peer& state = peers_[peer];
  if (!state.under_way.empty()) state.behind_fences.push_back({nullptr, nullptr});
  return {};
}

Status SimRdma::flush(Rank peer, CardCompletion& completion) {
  const CourseRef course = begin(&completion);
  peers_[peer].flushes.push_back({course->number, course});
  go_on(peer);
  return {};
}

Status SimRdma::wait(const CardCompletion& completion, FunctionRef<Status()> look) {
  while (completion.pending.load() != 0) {
    if (Status status = look(); !status.is_ok()) return status;
    if (!world_.step()) return {Code::system, "nothing happens any more"};
  }
  return {};
}

void SimRdma::abandon() {
  is_over_ = true;
  for (const CourseRef& course : std::exchange(courses_, {})) {
    tell(course, Code::peer_failed);
    course->is_abandoned = true;
  }
  peers_.clear();
}

}  // namespace farsum
