// What groups need for calls that nobody waits for: each gets a carry with its first such call, and leaves it with its
// end.
#pragma once

#include "base/status.hpp"
#include "collectives/carry.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/carries.hpp"
#include "runtime/group.hpp"
#include "runtime/network_side.hpp"
#include "runtime/node_extents.hpp"
#include "runtime/own_node.hpp"
#include "runtime/team_exchange.hpp"
#include "runtime/team_maker.hpp"

namespace farsum {

class CarriedGroups {
 public:
  struct Parts {
    const OwnNode& node;
    ShmTransport& transport;
    NetworkSide& network;
    Carries& carries;
    TeamExchange& exchange;
    ThreadWaiter& waiter;
    const TeamMaker& maker;
    const ops::KernelSet& kernels;
    AgentSide& agent;
    NodeExtents& extents;
    ReduceOrder reduce_order = {};
  };
  explicit CarriedGroups(const Parts& parts) : parts_(parts) {}

  // By a thread that makes a call of the group. The first starts the agent.
  Result<Carry*> carry_of(Group& group);
  // When no member has a call under way: all have come to the end of the group.
  void leave(Group& group);

 private:
  Parts parts_;
};

}  // namespace farsum
