#include "runtime/carried_groups.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "runtime/group_carry.hpp"

namespace farsum {

// What is carried of a group has a block of its own, which the first call asks for: groups without such calls have
// none.
Result<Carry*> CarriedGroups::carry_of(Group& group) {
  GroupCarry* carried = group.carried();
  if (carried == nullptr) {
    std::vector<std::uint32_t> here;
    for (const std::uint32_t member : group.places().here)
      here.push_back(parts_.node.here().place_of(group.ranks()[member]));
    // A rank that speaks for no node of several sends nothing.
    TeamPost& post = group.carried_post() != nullptr ? static_cast<TeamPost&>(*group.carried_post()) : parts_.exchange;
    carried = &group.set_carried(std::make_unique<GroupCarry>(
        GroupCarry::Parts{parts_.node.segment(), parts_.node.id_in_segment(), parts_.transport, parts_.network,
                          parts_.carries},
        std::move(here),
        GroupCarry::Of{group.team(), group.my_rank(), parts_.kernels, post, parts_.waiter,
                       parts_.maker.reduce_degree(group.places().nodes()), parts_.reduce_order}));
  }
  if (carried->is_open()) return &carried->carry();
  if (Status status = parts_.agent.start(); !status.is_ok()) return status;
  if (Status status = carried->open(group.carried_anchor()); !status.is_ok()) return status;
  return &carried->carry();
}

// When no member has a call under way: all have come to the end of the group. Each departs, for it does not know
// whether another one has a block.
void CarriedGroups::leave(Group& group) {
  if (group.carried() != nullptr) group.carried()->give_back();
  const auto here = static_cast<std::uint32_t>(group.places().here.size());
  CarriedAnchor& anchor = group.carried_anchor();
  if (GroupCarry::depart(anchor, here)) parts_.extents.give_back(GroupCarry::block_of(anchor, here));
}

}  // namespace farsum
