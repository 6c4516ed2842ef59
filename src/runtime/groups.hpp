// The groups of this rank: the ranks of its node, those of the job, and what the program makes of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "runtime/carried_groups.hpp"
#include "runtime/group.hpp"
#include "runtime/group_founding.hpp"
#include "runtime/group_rounds.hpp"
#include "runtime/own_node.hpp"
#include "runtime/team_maker.hpp"

namespace farsum {

class Groups {
 public:
  struct Parts : GroupFounding::Parts {
    const TeamMaker& maker;
    CarriedGroups& carried;
  };
  explicit Groups(const Parts& parts);

  // The group of this node's ranks, and where they are the job, the job's. It meets in memory that is there already.
  void begin_node();
  // The job's, once it is known whom this rank reaches. The node's ranks meet.
  Status begin_job();
  Group& home() { return *home_; }
  // All ranks. Where ranks of other nodes are not reached, it has no meetings.
  Group& world() { return *world_; }

  struct Creation {
    bool lacks_memory = false;            // the caller has found none; then no rank gets the group
    std::optional<std::uint64_t> number;  // what its ranks agreed on, and never before for this list
  };
  Result<Group*> create(Group& parent, std::span<const std::uint32_t> members, const Creation& creation);
  Result<Group*> create(Group& parent, std::span<const std::uint32_t> members) {
    return create(parent, members, Creation{});
  }
  Status free(Group* group);
  // The same for this rank alone, which waits for nobody: the others may go on with what needs nothing more of it.
  Status leave(Group* group);
  // By a thread that makes a call of the group that nobody waits for.
  Result<Carry*> carry_of(Group& group) { return parts_.carried.carry_of(group); }
  // pending where nobody has waited for a request of this rank's.
  Status find_open_requests();

 private:
  std::unique_ptr<Group> group_of_the_node();
  Status check(ListedRanks& listed) const;
  Status check_unused(const char* call, const Group& group) const;
  void part(Group* group);
  std::optional<std::uint64_t> next_round(const ListedRanks& listed);
  void forget(Group* group);

  Parts parts_;
  // The ranks of this node, and all: both are made before others call.
  std::unique_ptr<Group> home_;
  std::unique_ptr<Group> world_;
  ThreadMutex mutex_;
  std::vector<std::unique_ptr<Group>> groups_ FARSUM_GUARDED_BY(mutex_);
  GroupRounds rounds_ FARSUM_GUARDED_BY(mutex_);
};

}  // namespace farsum
