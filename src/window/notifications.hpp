// The notifications of a window's parts: counts that lie in the shared memory of their owner's node.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"
#include "progress/waiter.hpp"
#include "protocol/window_shared.hpp"

namespace farsum {

// Any thread may call.
class Notifications {
 public:
  // All outlive it.
  struct Needs {
    WindowId window = 0;
    std::uint32_t my_rank = 0;
    std::uint32_t slots = 0;
    std::span<const Rank> ranks;                 // of the job, by rank of the group
    std::span<const RankWindow> shared;          // of ranks of this node
    const std::function<void(Rank)>& wake_rank;  // wakes the waiting threads of a rank of this node
    Waiter& waiter;
  };
  explicit Notifications(const Needs& needs) : needs_(needs) {}

  // Whether raise() reaches the target: it is of this node.
  bool reach(std::uint32_t target) const { return needs_.shared[target].is_here(); }
  void raise(std::uint32_t target, std::uint32_t slot) {
    // Release: the data comes before the notification; pairs with the acquire loads in wait and value.
    needs_.shared[target].notifications()[slot].fetch_add(1, std::memory_order_release);
    needs_.wake_rank(needs_.ranks[target]);
  }
  // Of this rank's own part.
  Status wait(std::uint32_t slot, std::uint64_t at_least);
  Status value(std::uint32_t slot, std::uint64_t& value) const;

 private:
  Needs needs_;
};

}  // namespace farsum
