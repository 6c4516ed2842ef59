// A broadcast to a group's ranks of one node, who are all of it. What is short the root leaves for the others and goes
// on; what is longer goes over by copies of the kernel's, or in meetings. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/copied_call.hpp"
#include "collectives/copied_shares.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/node_team.hpp"
#include "collectives/reduction_refusals.hpp"
#include "collectives/rooted_rounds.hpp"
#include "lockfree/said_of_call.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// One call of one member. It is one of the calls of `rooted`, in step with the others. Each rank compares its call with
// the root's: who expects another length is told so, its buffer is as it was, and the next call is as any other. The
// root of a long one compares as well, before it writes: where a rank has called anything else than a broadcast from
// this root it gives the group up. The root of a short one hears of nobody.
class NodeBroadcast {
 public:
  struct Means {
    NodeTeam& team;
    NodeRounds& rounds;
    RootedRounds& rooted;
    CopiedShares& copies;
    Waiter& waiter;
    const std::vector<std::uint32_t>& ranks;  // the members' in the group
  };

  NodeBroadcast(const Means& means, std::span<std::byte> buffer, std::uint32_t root, const char* doing);

  Status run();

 private:
  bool goes_in_a_slot(std::uint64_t bytes) const { return bytes <= means_.rounds.slot_bytes(); }
  RefusedReduction refused() const { return {doing_, means_.team.rank(), said_}; }
  Status lead();
  Status await_followers();
  Status follow();
  Status differs_from_root();
  Status spread(std::uint64_t bytes, bool takes_part);
  Status copy(CopiedCall& copied);
  Status meet(std::uint64_t bytes, bool takes_part);
  Status met(Status status);
  Status give_up(Status why);

  Means means_;
  std::span<std::byte> buffer_;
  std::uint32_t root_;
  const char* doing_;
  SaidOfCall said_;
};

}  // namespace farsum
