// Collectives of a group that nobody waits for. Each rank leaves what it brings in the memory of its node and goes on;
// the last to come folds what is short, and what is long or goes to other nodes is gone on with by the process of the
// node's first rank, its agent where its threads do something else. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collectives/carried_bells.hpp"
#include "collectives/carried_extents.hpp"
#include "collectives/carried_folds.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carried_queue.hpp"
#include "collectives/carried_request.hpp"
#include "collectives/carried_walks.hpp"
#include "collectives/carry_help.hpp"
#include "collectives/group_team.hpp"
#include "collectives/team_post.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// What the agent goes on with.
class CarriedTurns {
 public:
  // What it comes back for by the clock is said there.
  struct Turn {
    bool is_unfinished = false;  // something has been folded: there may be more to be done at once
    bool is_refused = false;     // a letter had no room
  };
  enum class Folding : std::uint8_t { done, left };
  // By one thread at a time.
  virtual Turn take_turn(Folding folding) noexcept = 0;

 protected:
  ~CarriedTurns() = default;
};

// One member's view. begin() is called by one thread of a rank at a time, all else by any. It hands from part to part
// what they find: calls that are whole to who folds them, and walks until nothing more is over.
class Carry final : public CarriedTurns {
 public:
  struct Parts {
    GroupTeam& team;  // lives longer
    std::uint32_t my_rank;
    const ops::KernelSet& kernels;
    TeamPost& post;
    Waiter& waiter;
    CarryHelp& help;
    std::uint32_t degree = 0;                // as of ReductionMeans
    ReduceOrder order = ReduceOrder::nodes;  // of all calls that reduce
  };
  explicit Carry(const Parts& parts);
  // Where the members of this node carry; before anything else.
  void open(std::byte* block) noexcept { memory_.open(block); }

  // Never waits. `calls_before`: how many calls of the group that are not carried this rank has made. Where it fails
  // the others do not learn of the call. SYSTEM once the group is broken for this node: then also of calls to which
  // others have not come.
  Status begin(const std::shared_ptr<CarriedRequest>& request, std::uint64_t calls_before, const char* doing);
  // Whether the call is over; then the result is there or the status says why not, and the request is no more. HANDLE
  // where another thread has been told so.
  Status test(CarriedRequest& request, bool& is_over, const char* doing);
  // The same; a status of a call that is not over is of a rank that died.
  Status wait(CarriedRequest& request, bool& is_over, const char* doing);
  // Requests that are not over: where there are none, no thread uses this any more for one.
  std::size_t open_requests() const { return queue_.open_requests(); }

  // When no rank of the node does anything for the group any more: gives back what could not be before.
  void give_back_kept() { extents_.give_back_kept(); }

  Turn take_turn(Folding folding) noexcept override;

 private:
  using Seen = CarriedQueue::Seen;

  bool begin_all(const CarriedQueue::Whole& whole);
  void advance();
  bool try_to_advance();
  bool walk() noexcept { return walks_ && walks_->walk(); }
  Seen look(CarriedRequest& request);
  Status end(CarriedRequest& request, Seen seen, const char* doing);
  Status take_over(CarriedRequest& request, const char* doing);

  Waiter& waiter_;
  CarryHelp& help_;
  CarriedMemory memory_;
  CarriedExtents extents_;
  CarriedBells bells_;
  CarriedFolds folds_;
  CarriedQueue queue_;
  std::optional<CarriedWalks> walks_;  // on the first rank of each of several nodes
};

}  // namespace farsum
