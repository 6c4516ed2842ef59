// Runs a list of steps as far as letters have come and may leave. It never waits and allocates nothing; what a step
// does is its carrier's, so that library, simulator and model of times share it.
#pragma once

#include <cstddef>
#include <span>

#include "trees/schedule.hpp"

namespace farsum::trees {

class Carrier {
 public:
  virtual ~Carrier() = default;
  // Of a step that receives. False: its letter has not come, and nothing was done; else it was combined or copied.
  virtual bool take(const Step& step) = 0;
  // False: there is no room for the letter, and nothing was done; else what is held was copied into it, for the next
  // step may change that. May not walk the list that it is called from.
  virtual bool send(const Step& step) = 0;
};

// Goes on at step `at`, which is 0 first, and leaves there the step that waits for a letter or for room. True at the
// end.
bool advance(std::span<const Step> steps, std::size_t& at, Carrier& carrier);

}  // namespace farsum::trees
