// A long call of a node's ranks in which they copy from and to one another's memory: what each tells the others before,
// and how all learn of what could not be copied. Owner: collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/copied_shares.hpp"
#include "collectives/node_rounds.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// One member's part of one call, which all have begun without data in these rounds. Until it ends, what the members
// have told lies where pieces begin. Pages of this process stay where they are as long as this lives.
class CopiedCall {
 public:
  // `ranks` are the members' in the group, by their places.
  CopiedCall(NodeRounds& rounds, CopiedShares& copies, Waiter& waiter, const std::vector<std::uint32_t>& ranks,
             std::uint32_t me, const char* doing);
  ~CopiedCall() { copies_.end(); }
  CopiedCall(const CopiedCall&) = delete;
  CopiedCall& operator=(const CopiedCall&) = delete;

  // Before the next step of the call, either of the two: where this member has what is copied, and where it gets it (an
  // empty `result`: it gets nothing); or that it can copy nothing.
  void tell(std::span<const std::byte> mine, std::span<std::byte> result);
  void tell_that_it_cannot();
  // Behind that step. Where it is false on one member it is on all, and nothing was copied.
  bool can_all();
  // What all have told.
  std::span<const CopiedShares::Told> members() const { return std::span(told_).first(rounds_.ranks()); }
  // This member has copied what it copies in this part of the call, of which there are two at most. All come here; who
  // hears of something missed, here or elsewhere, fails, and the next call is as any other.
  Status end(const std::optional<CopiedShares::Missed>& missed, int part);

 private:
  struct Copied;

  std::byte* copied_by(std::uint32_t member, int part) const;
  std::atomic_ref<std::uint32_t> has_left(std::uint32_t member) const;
  Status told_of_death();
  Status leave(Status why);
  Status not_copied(std::uint32_t by, const Copied& copied) const;

  NodeRounds& rounds_;
  CopiedShares& copies_;
  Waiter& waiter_;
  const std::vector<std::uint32_t>& ranks_;
  std::uint32_t me_;
  const char* doing_;
  std::array<CopiedShares::Told, CopiedShares::most_members> told_{};
};

}  // namespace farsum
