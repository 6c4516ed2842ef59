// Finds and kills everything that descends from this process. Works because the caller is a child subreaper: what its
// children leave behind, daemons included, becomes its own child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <unordered_set>
#include <vector>

namespace farsum::cli {

using PidSet = std::unordered_set<pid_t>;

// The living and the unreaped descendants of `root`, parents before their children. Those in `spared` and below are
// left out.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root, const PidSet& spared);

// Ends all descendants of this process. Its owner reaps, and repeats the killing while it is due, until nobody is left:
// a process may fork before the signal reaches it, and then its child is the caller's once the parent can be reaped.
class Sweep {
 public:
  // The longest time between two walks while some are left.
  static constexpr std::chrono::milliseconds longest_gap{50};

  explicit Sweep(PidSet spared = {}) : spared_(std::move(spared)) {}

  // Sends SIGKILL to every descendant, and walks again until a walk finds nobody new. Returns how many there are, dying
  // ones included.
  std::size_t kill_everyone();
  void child_was_reaped() { reaped_ += 1; }
  // Whether another walk is worth its time: half of those found were reaped, or the gap has passed. So a job of many
  // processes costs a few walks and not one for each that dies.
  [[nodiscard]] bool due() const;

 private:
  PidSet spared_;
  std::size_t found_ = 0;
  std::size_t reaped_ = 0;
  std::chrono::steady_clock::time_point last_walk_{};
};

}  // namespace farsum::cli
