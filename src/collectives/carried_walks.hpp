// What the first rank of each of several nodes does between them for the calls that nobody waits for: a walk for each
// place, which goes on as far as letters have come. Owner: collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/settings.hpp"
#include "collectives/carried_bells.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carried_walk.hpp"
#include "collectives/carry_help.hpp"
#include "collectives/group_team.hpp"
#include "collectives/team_post.hpp"
#include "lockfree/marked_lock.hpp"
#include "ops/kernels.hpp"

namespace farsum {

// Any thread may call; one at a time walks.
class CarriedWalks {
 public:
  struct Parts {
    const GroupTeam& team;
    const CarriedMemory& memory;
    CarriedBells& bells;
    CarryHelp& help;
    TeamPost& post;
    const ops::KernelSet& kernels;
    std::uint32_t degree;  // as of ReductionMeans
    ReduceOrder order;     // of all calls that reduce
  };
  explicit CarriedWalks(const Parts& parts);

  // Whether a call has ended by it. Nothing is thrown here: what was, would leave the claim held and the node standing.
  bool walk() noexcept;
  // A letter had no room: nobody tells of it when there is some.
  bool is_refused() const { return is_refused_.load(std::memory_order_relaxed); }

 private:
  // With the claim held.
  bool walk_place(std::uint64_t of_place);
  void begin(std::uint64_t number);
  bool reach_parts(std::uint64_t number, const CarriedCall& call);

  const CarriedMemory& memory_;
  CarriedBells& bells_;
  CarryHelp& help_;
  CarriedLists lists_;
  std::atomic<bool> is_refused_{false};
  MarkedLock walking_;  // guards what follows
  std::vector<CarriedWalk> walks_;
  std::vector<const std::byte*> parts_;  // by place and member here, of calls in which ranks decide the order
  // By place, the tag of the last call that was walked, or is.
  std::array<std::uint64_t, CarriedMemory::places> walked_{};
};

}  // namespace farsum
