#include "collectives/node_team.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace farsum {

std::byte* NodeTeam::slots() const {
  return reinterpret_cast<std::byte*>(&block_) + NodeTeamBlock::meeting_bytes(ranks_) +
         (meeting_.round() & 1) * NodeTeamBlock::half(ranks_);
}

// Acquire and release: the last to depart comes after everything the others did with the block.
bool NodeTeam::depart() { return block_.departed.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_; }

template <class ByTheLast>
Status NodeTeam::meet(const ByTheLast& by_the_last, const char* doing) {
  if (!broken_.is_ok()) return {broken_.code(), broken_.text()};
  const std::uint32_t round = meeting_.round();
  if (!meeting_.arrive(my_rank_, round)) return await_others(round, doing);
  by_the_last();
  meeting_.open(round, woken_at_once());
  return {};
}

Status NodeTeam::barrier(const char* doing) {
  return meet([] {}, doing);
}

Status NodeTeam::barrier_with(FunctionRef<void()> by_the_last, const char* doing) { return meet(by_the_last, doing); }

Status NodeTeam::await_others(std::uint32_t round, const char* doing) {
  Status status = waiter_.wait(
      block_.events, [&] { return meeting_.is_over(round) || has_one_that_never_comes(); }, doing);
  // Where the round is over all have come, whoever stays away from the next.
  if (status.is_ok() && !meeting_.is_over(round)) status = who_never_comes(doing);
  if (!status.is_ok()) broken_ = {status.code(), std::string(status.text())};
  return status;
}

// Acquire: what this member has read before of that one's memory was its own until then.
bool NodeTeam::has_one_that_never_comes() const {
  return block_.given_up.load(std::memory_order_acquire) >> 32 == every_number;
}

Status NodeTeam::who_never_comes(const char* doing) const {
  const auto word = static_cast<std::uint32_t>(block_.given_up.load(std::memory_order_relaxed));
  const auto code = static_cast<Code>(word >> code_at);
  if (code == Code::peer_failed) {
    // Who was told of a death before it gave up has noted which rank it was.
    if (Status death = waiter_.looked_in_vain(doing); !death.is_ok()) return death;
  }
  const std::uint32_t member = (word & ((1u << code_at) - 1)) - 1;
  return {code, fmt::format("{}: the one in place {} of those on this node {}", doing, member,
                            code == Code::no_memory ? "has no memory left, or no room to map where its ranks meet"
                                                    : "has failed and does not come; it has been told why")};
}

// The first who stays away is named, whatever comes later: others may do so because of it. Relaxed: see
// has_one_that_never_comes; and a barrier comes between who gives up and who asks.
void NodeTeam::write_given_up(NodeTeamBlock& block, std::uint64_t word) {
  std::uint64_t seen = block.given_up.load(std::memory_order_relaxed);
  while (seen >> 32 != every_number && !block.given_up.compare_exchange_weak(seen, word, std::memory_order_relaxed)) {
  }
}

void NodeTeam::stay_away(NodeTeamBlock& block, std::uint32_t rank, Code code) {
  write_given_up(block, never_comes(rank, code));
  block.events.notify_all();
}

// An arrival at a later meeting would let one through who waits at this one.
void NodeTeam::stay_away(const Status& why) {
  broken_ = {why.code(), std::string(why.text())};
  stay_away(block_, my_rank_, why.code());
}

void NodeTeam::give_up(std::uint32_t number, std::uint32_t who) {
  write_given_up(block_, std::uint64_t{number} << 32 | who);
}

// Relaxed: see write_given_up.
std::uint32_t NodeTeam::who_gave_up(std::uint32_t number) const {
  const std::uint64_t word = block_.given_up.load(std::memory_order_relaxed);
  return word >> 32 == number ? static_cast<std::uint32_t>(word) : 0;
}

Status NodeTeam::allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing) {
  const auto take = [&](std::uint32_t member, std::size_t done, std::span<const std::byte> piece) {
    std::memcpy(all.data() + member * mine.size() + done, piece.data(), piece.size());
  };
  return gather(mine, take, doing);
}

Status NodeTeam::gather(std::span<const std::byte> mine,
                        FunctionRef<void(std::uint32_t, std::size_t, std::span<const std::byte>)> take,
                        const char* doing) {
  for (std::size_t done = 0; done < mine.size(); done += NodeTeamBlock::slot_bytes) {
    const std::size_t bytes = std::min(NodeTeamBlock::slot_bytes, mine.size() - done);
    std::byte* const place = slots();
    std::memcpy(place + my_rank_ * NodeTeamBlock::slot_bytes, mine.data() + done, bytes);
    if (Status status = barrier(doing); !status.is_ok()) return status;
    for (std::uint32_t member = 0; member < ranks_; ++member)
      take(member, done, {place + member * NodeTeamBlock::slot_bytes, bytes});
  }
  return {};
}

// Each member's slot goes to all[rank * stride + done].
void NodeTeam::take_slots(const std::byte* place, std::span<std::byte> all, std::size_t stride, std::size_t done,
                          std::size_t bytes) const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    std::memcpy(all.data() + rank * stride + done, place + rank * NodeTeamBlock::slot_bytes, bytes);
}

Status NodeTeam::consult(std::span<const std::byte> mine, std::span<std::byte> all, std::span<std::byte> answer,
                         FunctionRef<void()> decide, const char* doing) {
  for (std::size_t done = 0; done < mine.size(); done += NodeTeamBlock::slot_bytes) {
    const std::size_t bytes = std::min(NodeTeamBlock::slot_bytes, mine.size() - done);
    const bool ends = done + bytes == mine.size();
    std::byte* const place = slots();
    std::memcpy(place + my_rank_ * NodeTeamBlock::slot_bytes, mine.data() + done, bytes);
    bool has_answered = false;
    const auto answer_all = [&] {
      take_slots(place, all, mine.size(), done, bytes);
      if (!ends) return;
      decide();
      std::memcpy(staging(place), answer.data(), answer.size());
      has_answered = true;
    };
    if (Status status = meet(answer_all, doing); !status.is_ok()) return status;
    if (has_answered) return {};
    take_slots(place, all, mine.size(), done, bytes);
    if (ends) std::memcpy(answer.data(), staging(place), answer.size());
  }
  return {};
}

Status NodeTeam::broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  const auto fill = [&](std::size_t done, std::span<std::byte> piece) {
    std::memcpy(piece.data(), buffer.data() + done, piece.size());
  };
  const auto take = [&](std::size_t done, std::span<const std::byte> piece) {
    std::memcpy(buffer.data() + done, piece.data(), piece.size());
  };
  return tell(buffer.size(), root, fill, take, doing);
}

Status NodeTeam::tell(std::size_t bytes, std::uint32_t root, FunctionRef<void(std::size_t, std::span<std::byte>)> fill,
                      FunctionRef<void(std::size_t, std::span<const std::byte>)> take, const char* doing) {
  for (std::size_t done = 0; done < bytes; done += NodeTeamBlock::staging_bytes) {
    const std::size_t length = std::min(NodeTeamBlock::staging_bytes, bytes - done);
    std::byte* const place = staging(slots());
    if (my_rank_ == root) fill(done, {place, length});
    if (Status status = barrier(doing); !status.is_ok()) return status;
    if (my_rank_ != root) take(done, {place, length});
  }
  return {};
}

}  // namespace farsum
