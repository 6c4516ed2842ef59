// A group of ranks of one node that meet in shared memory: barrier, broadcast and allgather of bytes. Waiters sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "lockfree/meeting.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"
#include "window/team.hpp"

namespace farsum {

// It lies in the node segment; zeroed memory is a valid block.
struct NodeTeamBlock {
  // Written by every member that arrives, or by the last of each group of them: see lockfree/meeting.hpp.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> arrived;
  // Written by the last to arrive.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> round;
  // Written by members that will not touch the block again.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> departed;
  // Written by a member that cannot go on with what the members do together: the number of that, and the member + 1.
  std::atomic<std::uint64_t> given_up;
  // Members asleep in a barrier.
  EventCount events;
  // Then the other lines at which members arrive; and, for even and for odd rounds, `ranks` slots of slot_bytes, for
  // what each member tells, and staging_bytes for what one tells all.

  static constexpr std::size_t slot_bytes = 256;
  static constexpr std::size_t staging_bytes = 32768;
  static std::size_t half(std::uint32_t ranks) { return ranks * slot_bytes + staging_bytes; }
  // The length of a block for barriers alone.
  static std::size_t meeting_bytes(std::uint32_t ranks) {
    return sizeof(NodeTeamBlock) + MeetingShape{ranks}.lines() * cache_line_bytes;
  }
  static std::size_t footprint(std::uint32_t ranks) { return meeting_bytes(ranks) + 2 * half(ranks); }
};

// One member's view. One thread of a rank calls at a time.
class NodeTeam : public Team {
 public:
  NodeTeam(NodeTeamBlock& block, std::uint32_t ranks, std::uint32_t my_rank, Waiter& waiter)
      : block_(block),
        ranks_(ranks),
        my_rank_(my_rank),
        waiter_(waiter),
        meeting_({ranks}, block.arrived, reinterpret_cast<Meeting::Line*>(&block + 1), block.round, block.events) {}

  Status barrier(const char* doing) override;
  // A barrier in which the last to come runs `by_the_last` before the others go on, with what all did before it.
  Status barrier_with(FunctionRef<void()> by_the_last, const char* doing);
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing);
  Status broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing);
  // The same two with bytes that lie as the caller likes: `take` is given each piece of each member's, with how many of
  // that member's lie before it; the root's `fill` writes each piece of what it tells, the others' `take` reads it.
  Status gather(std::span<const std::byte> mine,
                FunctionRef<void(std::uint32_t member, std::size_t done, std::span<const std::byte> piece)> take,
                const char* doing);
  Status tell(std::size_t bytes, std::uint32_t root,
              FunctionRef<void(std::size_t done, std::span<std::byte> piece)> fill,
              FunctionRef<void(std::size_t done, std::span<const std::byte> piece)> take, const char* doing);
  // Does as allgather does, and one member answers all of them: the last to come runs `decide`, with what all have said
  // in its `all`, which writes its `answer`. An answer has at most staging_bytes; this is for members that mean to be
  // answered alike.
  Status consult(std::span<const std::byte> mine, std::span<std::byte> all, std::span<std::byte> answer,
                 FunctionRef<void()> decide, const char* doing);

  // This member cannot go on with what the members have numbered so; told to all by the next barrier, behind which
  // who_gave_up() answers with the rank + 1 of such a member, or with what it says of itself; 0 for none. Numbers do
  // not come again.
  void give_up(std::uint32_t number) { give_up(number, my_rank_ + 1); }
  void give_up(std::uint32_t number, std::uint32_t who);
  std::uint32_t who_gave_up(std::uint32_t number) const;

  // Called by a member that comes to no meeting. Every barrier then fails with the code.
  static void stay_away(NodeTeamBlock& block, std::uint32_t rank, Code code);
  // The same by a member that may have come to earlier ones: its own calls fail from now on with the same.
  void stay_away(const Status& why);
  // Whether some member has called that, and how a call then fails.
  bool has_one_that_never_comes() const;
  Status who_never_comes(const char* doing) const;
  // A member that cannot map the block has to store this at `given_up_at` of it by other means.
  static constexpr std::size_t given_up_at = offsetof(NodeTeamBlock, given_up);
  static constexpr std::uint64_t never_comes(std::uint32_t rank, Code code = Code::no_memory) {
    return std::uint64_t{every_number} << 32 | std::uint64_t{static_cast<std::uint8_t>(code)} << code_at | (rank + 1);
  }

  // The caller's last use of the block; true for the last member, who may give it back.
  bool depart();

  // How often the members have met. Moves on when this one has come.
  std::uint32_t meetings() const { return block_.round.load(std::memory_order_relaxed); }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t rank() const { return my_rank_; }
  NodeTeamBlock& block() const { return block_; }
  // How many sleepers a member wakes that has something for all, each of whom wakes as many. 0: it wakes all, as where
  // they wait for processors: a waker that has none would hold the others up.
  std::uint32_t woken_at_once() const {
    return ranks_ <= most_woken_by_one || waiter_.is_crowded() ? 0 : woken_by_each;
  }

 private:
  // More sleepers are woken in turn, each waking so many: they come sooner than one after the other.
  static constexpr std::uint32_t most_woken_by_one = 8;
  static constexpr std::uint32_t woken_by_each = 4;

  // What the last to come does before the others go on. A template, so that a barrier calls nothing for it.
  template <class ByTheLast>
  Status meet(const ByTheLast& by_the_last, const char* doing);
  Status await_others(std::uint32_t round, const char* doing);
  void take_slots(const std::byte* place, std::span<std::byte> all, std::size_t stride, std::size_t done,
                  std::size_t bytes) const;
  static void write_given_up(NodeTeamBlock& block, std::uint64_t word);
  static constexpr std::uint32_t every_number = ~std::uint32_t{0};
  static constexpr unsigned code_at = 24;  // above the ranks of a node
  // Where data goes that is exchanged by the next barrier: not where that of the last one may still be read. Who writes
  // there once more has met all in a barrier in between, to which they came when they had read.
  std::byte* slots() const;
  std::byte* staging(std::byte* slots) const { return slots + ranks_ * NodeTeamBlock::slot_bytes; }

  NodeTeamBlock& block_;
  std::uint32_t ranks_;
  std::uint32_t my_rank_;
  Waiter& waiter_;
  Meeting meeting_;
  // Set when a rank died while this member waited, or when this member stays away: the block then counts an arrival
  // whose round never comes, so that a later arrival could be taken for that of the dead.
  Status broken_;
};

}  // namespace farsum
