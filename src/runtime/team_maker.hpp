// Makes what the ranks of a group or of a window meet and reduce with.
#pragma once

#include <cstdint>
#include <memory>

#include "base/settings.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/peer_memory.hpp"
#include "cost/tree_rule.hpp"
#include "ops/kernels.hpp"
#include "progress/thread_waiter.hpp"
#include "runtime/group.hpp"
#include "runtime/team_exchange.hpp"

namespace farsum {

class TeamMaker {
 public:
  struct Parts {
    ThreadWaiter& waiter;
    LetterDesk& desk;
    TeamExchange& exchange;
    PeerMemory& peer_memory;
    const ops::KernelSet& kernels;
    ReduceOrder reduce_order = {};
  };
  explicit TeamMaker(const Parts& parts) : parts_(parts) {}

  // By what nodes take the trees of their reductions, which rank 0 decides for the whole job: before any team over
  // nodes is made.
  void set_trees(const cost::TreeRule& trees) { trees_ = trees; }
  const cost::TreeRule& trees() const { return trees_; }
  // Of the tree in which so many nodes reduce; 0: by their number.
  std::uint32_t reduce_degree(std::uint32_t nodes) const { return cost::usual_degree(trees_, nodes); }

  Group::Means make(GroupPlaces places, std::uint32_t my_rank) const;
  // Null where this rank speaks for no node of several.
  std::unique_ptr<LetterPost> make_post(const GroupPlaces& places, std::uint32_t my_rank, LetterPost::Use use) const;

 private:
  Parts parts_;
  cost::TreeRule trees_;
};

}  // namespace farsum
