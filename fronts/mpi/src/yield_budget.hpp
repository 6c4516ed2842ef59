// How often a thread that works may offer its processor to others. Where nobody wants it that costs a third of a
// microsecond; where others compute beside it, milliseconds, which they would have had at the end of its slice anyway.
// Pure: times come from outside, in ticks of the time stamp counter, 1 to 5 in a nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farsum::mpi {

class YieldBudget {
 public:
  // A thread works for so many times as long as its last yield took before it yields again: 2 % of its time at most.
  static constexpr std::uint64_t work_for_each = 50;
  // In a crowded job it may have been another rank that took a slice, and polls for what this one does next. Launchers
  // give ranks sessions of their own, between which a yield hands nothing back: with 50 a ticket lock of 4 ranks on 2
  // processors is passed on in 300 to 2700 us instead of 60 to 70.
  static constexpr std::uint64_t work_for_each_if_crowded = 2;
  // About 1 ms. Who has taken the processor for less has given it back, as the other ranks of a crowded job do that
  // poll, too: what they wait for may be this thread's to do, and what it waits for theirs.
  static constexpr std::uint64_t shortest_slice = 3'000'000;
  // A process that was stopped meanwhile is no reason to wait for minutes.
  static constexpr std::uint64_t longest_slice = 20 * shortest_slice;

  // Whether a job has more ranks on its node than there are processors.
  enum class Job : bool { has_processors, is_crowded };

  [[nodiscard]] bool allows(std::uint64_t now) const { return now - came_back_ >= owed_; }
  void yielded(Job job, std::uint64_t began, std::uint64_t came_back) {
    came_back_ = came_back;
    owed_ = owed_for(job, std::min(came_back - began, longest_slice));
  }

 private:
  static std::uint64_t owed_for(Job job, std::uint64_t taken) {
    if (job == Job::has_processors) return work_for_each * taken;
    return taken < shortest_slice ? 0 : work_for_each_if_crowded * taken;
  }

  std::uint64_t came_back_ = 0;
  std::uint64_t owed_ = 0;  // work, from there on
};

}  // namespace farsum::mpi
