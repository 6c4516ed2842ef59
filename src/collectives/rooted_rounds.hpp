// Calls of a group's ranks of one node in which what all say goes to one of them, the root, or what the root says goes
// to all: who has nothing to get leaves its part and goes on, at most two calls ahead of who reads it. It carries
// bytes, and leaves to its caller what is done with them. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/node_team.hpp"
#include "lockfree/handover.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// One member's view. One thread of a rank calls at a time, and for this and its NodeRounds together. All members make
// the same calls of both in the same order; where one is seen in another the others fail from then on. What they say
// of a call may differ, and then costs them this call alone. Nothing here allocates but the sentence of a failure.
class RootedRounds {
 public:
  // In the same block as `rounds`.
  RootedRounds(std::byte* block, NodeTeam& team, NodeRounds& rounds, Waiter& waiter);

  // How many of these calls this member has begun.
  std::uint64_t calls() const { return handover_.calls(); }

  // By all but the root, with data of at most a slot. It waits where the one before the last is not read yet.
  Status leave(const SaidOfCall& said, std::span<const std::byte> data, std::uint32_t root, const char* doing);
  // The same, and waits for what the root says then. False where the root has not said the same of this call as this
  // member: then it says nothing.
  Status leave_and_hear(const SaidOfCall& said, std::span<const std::byte> data, std::uint32_t root,
                        std::span<std::byte> heard, bool& has_said_the_same, const char* doing);

  // By a root that has something for all others and gets nothing, with data of at most a slot. It waits where somebody
  // has not read the one before the last.
  Status leave_for_all(const SaidOfCall& said, std::span<const std::byte> data, const char* doing);
  // Behind that: waits until all others have begun the call.
  Status await_all(const char* doing);
  // By all others: waits until that root has begun the call. If it has said the same, its data can be read until
  // finish().
  Status hear_root(const SaidOfCall& said, std::uint32_t root, const char* doing);

  // By the root: waits until all others have begun the call. What of its own it wants to read from its slot, as it does
  // the others' data, is `mine`.
  Status gather(const SaidOfCall& said, std::span<const std::byte> mine, const char* doing);
  // What a member has said of this call; nothing where it has gone on, because it neither gets anything of this one nor
  // has left anything for it.
  std::optional<SaidOfCall> said(std::uint32_t member) const { return handover_.said(member); }
  // Of one that has said the same as this member, and left so many bytes for it.
  const std::byte* data(std::uint32_t member, std::size_t bytes) const { return handover_.data(member, bytes); }
  // Told to those that hear. Between gather() and finish().
  void say(std::span<const std::byte> words) { handover_.say_more(words); }
  // This member reads nothing more of this call. After each gather() and hear_root() that went well, whatever the
  // others have said.
  void finish() { handover_.finish(); }

 private:
  Status begin(const char* doing);
  bool have_all_come() const;
  Status await(std::uint32_t member, FunctionRef<bool()> done, const char* doing);
  Status await_slow_readers(const char* doing);
  Status told_astray(std::uint32_t member, const char* doing);

  NodeTeam& team_;
  NodeRounds& rounds_;
  Waiter& waiter_;
  Handover handover_;
};

}  // namespace farsum
