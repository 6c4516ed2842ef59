// What the ranks of a node have said of a reduction, compared with what this one has. Owner: collectives.
#pragma once

#include <cstdint>

#include "base/group_places.hpp"
#include "base/status.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/reduction_refusals.hpp"
#include "collectives/rooted_rounds.hpp"
#include "lockfree/said_of_call.hpp"

namespace farsum {

// What a rank has found for which others leave what they bring, for those that ask before they go on.
struct FoundAtRoot {
  enum class What : std::uint32_t {
    the_same,
    another_reduction,  // by `rank`, which has said `said`
    no_reduction,       // on the node whose first rank is `rank`
    gone_on,            // `rank` has, to a call of its own after one that is not known any more
    out_of_step,        // `rank` has made other calls before this one
  };
  SaidOfCall said;
  std::uint32_t rank = 0;
  What what = What::the_same;
};

// Of one that has come. Who has gone on is found to have made another call, which is not known any more.
FoundAtRoot compare_said(const RootedRounds& rounds, const GroupPlaces& places, const SaidOfCall& mine,
                         std::uint32_t member);

// Behind the first step of a call.
bool have_all_said(const NodeRounds& rounds, const SaidOfCall& said);
// Where they have not. What no later call can mend, all are told.
Status who_said_otherwise(NodeRounds& rounds, const GroupPlaces& places, const RefusedReduction& refused);

}  // namespace farsum
