// The computation of a task: paper 3's loop, long enough for the time asked for, with no system call inside.
#pragma once

#include <cstdint>

#include "options.hpp"

namespace counter {

class Work {
 public:
  // Measures how fast this processor runs the loop.
  Work();

  // Computes for about `ms` milliseconds of processor time.
  void compute(double ms);

 private:
  void turn(std::uint64_t turns);

  double turns_per_ms_;
  double sum_ = 0;
  std::uint64_t turned_ = 0;
};

// The length of a task: always the mean, or by a seeded draw that depends on the task alone, so that it is the same
// whoever computes it.
[[nodiscard]] double task_ms(Tasks tasks, double mean_ms, std::uint64_t seed, std::uint64_t task);

}  // namespace counter
