// Rounds of a group's ranks of one node in shared memory, in which each says something and hears all others: what a
// call is, with a little data or much. It carries bytes, and leaves to its caller what is done with them. Owner:
// collectives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/node_team.hpp"
#include "lockfree/handover.hpp"
#include "lockfree/rounds.hpp"
#include "lockfree/said_of_call.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// It lies in the node segment, behind the NodeTeamBlock of a group; zeroed memory is a valid block.
struct NodeRoundsBlock {
  using RankPart = BasicRoundPart<SystemAtomics>;
  using Line = RankPart::Line;
  // By the first rank, to those of its node: what the ranks of other nodes have said.
  enum class Finding : std::uint32_t {
    the_same,
    another_reduction,  // by `rank`, who has said `said`
    no_reduction,       // on the node whose first rank is `rank`
  };
  struct alignas(2 * cache_line_bytes) Verdict {
    SaidOfCall said;
    std::uint32_t rank;
    Finding finding;
  };
  // Where members meet, by the last to come to the first step of a call, if it comes for that: which step, and the
  // first member that has come for something else + 1, or 0.
  struct alignas(2 * cache_line_bytes) Count {
    std::uint64_t step;
    std::uint32_t stranger;
  };

  // Behind verdict and count: a part for each rank, and one for RootedRounds; a slot for each rank's odd and even
  // calls, and as many for RootedRounds; the answer; a piece for each rank. What is long lies last, so that groups
  // which never need it touch no page of it.
  static constexpr std::size_t most_slot_bytes = 4096;
  static std::size_t slot_bytes(std::uint32_t ranks) { return shared_among(ranks, slots_bytes, 256, most_slot_bytes); }
  static std::size_t piece_bytes(std::uint32_t ranks) { return shared_among(ranks, pieces_bytes, 2048, 49152); }
  static constexpr std::size_t parts_at = sizeof(Verdict) + sizeof(Count);
  static std::size_t handover_at(std::uint32_t ranks) { return parts_at + ranks * sizeof(RankPart); }
  static std::size_t slots_at(std::uint32_t ranks) { return handover_at(ranks) + ranks * sizeof(HandoverPart); }
  static std::size_t handover_slots_at(std::uint32_t ranks) { return slots_at(ranks) + 2 * ranks * slot_bytes(ranks); }
  static std::size_t answer_at(std::uint32_t ranks) { return handover_slots_at(ranks) + 2 * ranks * slot_bytes(ranks); }
  static std::size_t pieces_at(std::uint32_t ranks) { return answer_at(ranks) + piece_bytes(ranks); }
  static std::size_t footprint(std::uint32_t ranks) { return pieces_at(ranks) + ranks * piece_bytes(ranks); }

 private:
  // With these the block of a usual group is short enough for the heap to keep it warm for the next.
  static constexpr std::size_t slots_bytes = 16 << 10;
  static constexpr std::size_t pieces_bytes = 48 << 10;

  static std::size_t shared_among(std::uint32_t ranks, std::size_t bytes, std::size_t least, std::size_t most) {
    return std::clamp(bytes / ranks / cache_line_bytes * cache_line_bytes, least, most);
  }
};

// Where a node's ranks find what carries the calls of their group that nobody waits for.
struct alignas(2 * cache_line_bytes) CarriedAnchor {
  std::atomic<std::uint64_t> block_at;  // offset in the segment of their CarriedBlock; 0 before the first such call
  std::atomic<std::uint32_t> departed;  // ranks that use none of it any more; the last gives the block back
};

// What a group has in the segment of each of its nodes.
struct GroupBlock {
  static std::size_t carried_at(std::uint32_t ranks) {
    return round_up(NodeTeamBlock::footprint(ranks), alignof(CarriedAnchor));
  }
  static std::size_t rounds_at(std::uint32_t ranks) {
    return round_up(carried_at(ranks) + sizeof(CarriedAnchor), alignof(NodeRoundsBlock::RankPart));
  }
  static std::size_t footprint(std::uint32_t ranks) { return rounds_at(ranks) + NodeRoundsBlock::footprint(ranks); }
};

// One member's view. One thread of a rank calls at a time. All members begin the same calls in the same order, and go
// through the same number of steps: of one only, where they have not all said the same. Nothing here allocates but the
// sentence of a failure.
//
// A call is a row of steps, at each of which every member waits for every other: see lockfree/rounds.hpp for lines and
// slots. Of pieces one is enough: the others read it before a further step of the same call, and it is written before
// the next call begins or later. Of the answer, too: it is written in or behind the first step of a call, to which all
// come when they have read that of the last.
//
// Few members that have a processor each look at one another's lines, and each does all that is to be done: nothing
// is handed over but those lines. Others meet as for a barrier, and the last to come does it for all.
class NodeRounds {
 public:
  NodeRounds(std::byte* block, NodeTeam& team, Waiter& waiter);

  std::uint32_t ranks() const { return ranks_; }
  // The most data that a call may begin with, and the most that a member has in its piece.
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::size_t piece_bytes() const { return piece_bytes_; }

  // The first step of a call. Where the members meet, the last to come runs `by_the_last`, which may write the answer.
  Status begin(const SaidOfCall& said, std::span<const std::byte> data, FunctionRef<void()> by_the_last,
               const char* doing);
  // Whether begin() runs anything by the last.
  bool has_a_last() const { return form_ == Form::meet; }
  Status next_step(const char* doing);
  // In place of begin(), where the members hear by other means that a call is this one: all begin it so, though not all
  // have come to it when the first goes on. What a member writes before its next step, others read behind that.
  void begin_agreed();
  // Whether all members have begun this call. Not so where they meet and one has come for something else: who that is,
  // if it was not the last to come.
  bool have_all_begun() const { return have_all_begun_; }
  std::optional<std::uint32_t> stranger() const;
  // Each call of this member fails from now on, and how.
  Status why_broken() const { return broken_.is_ok() ? Status() : Status{broken_.code(), broken_.text()}; }
  void break_off(const Status& why) { broken_ = {why.code(), why.text()}; }
  // The same, of all members: this one goes no further with what they have begun, and they cannot know. They fail also
  // where they meet for something else.
  void give_up(const Status& why);

  // Where others sleep until that member does what they wait for, be it not of these calls.
  EventCount& events(std::uint32_t member) const { return rounds_.events(member); }
  // What this member finds that waits for another, outside of these calls.
  Awaited look_for(std::uint32_t member, FunctionRef<bool()> done) const { return rounds_.look_for(member, done); }
  // What is close comes within so many looks at all, which end as soon as it has: a look of the waiter's takes longer.
  static constexpr int first_looks = 64;

  // What a member began the call with; until the caller begins the next.
  const SaidOfCall& said(std::uint32_t member) const { return rounds_.line(member).said; }
  const std::byte* data(std::uint32_t member) const;
  // At least 256 bytes for what a member says behind the first step of a call that it has begun without data. All may
  // read it until they begin the next call: the member writes there again two calls later.
  std::byte* room(std::uint32_t member) const { return slot(member); }
  std::byte* piece(std::uint32_t member) const { return pieces_ + member * piece_bytes_; }
  std::byte* answer() const { return answer_; }
  NodeRoundsBlock::Verdict& verdict() const { return *reinterpret_cast<NodeRoundsBlock::Verdict*>(block_); }

 private:
  enum class Form : std::uint8_t { unknown, look, meet };
  static constexpr std::uint32_t most_that_look = 8;

  NodeRoundsBlock::Count& count() const {
    return *reinterpret_cast<NodeRoundsBlock::Count*>(block_ + sizeof(NodeRoundsBlock::Verdict));
  }
  std::byte* slot(std::uint32_t member) const { return slots_ + (2 * member + (rounds_.calls() & 1)) * slot_bytes_; }
  void choose_form();
  void count_members();
  bool have_all_come() const;
  Status await_others(const char* doing);

  std::byte* block_;
  BasicRounds<SystemAtomics> rounds_;
  std::byte* slots_;
  std::byte* answer_;
  std::byte* pieces_;
  NodeTeam& team_;
  Waiter& waiter_;
  std::uint32_t ranks_;
  std::uint32_t me_;
  std::size_t slot_bytes_;
  std::size_t piece_bytes_;
  std::size_t data_bytes_ = 0;  // of the current call
  bool have_all_begun_ = true;  // it
  // Chosen at the first call: by then all members know whether the node is crowded.
  Form form_ = Form::unknown;
  Status broken_;  // see NodeTeam
};

}  // namespace farsum
