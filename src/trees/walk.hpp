// Runs a list of steps as far as letters have come. It never waits and allocates nothing; what a step does is its
// carrier's, so that library, simulator and model of times share it.
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
  // Takes what is held before it returns; may not walk the list that it is called from.
  virtual void send(const Step& step) = 0;
};

// Goes on at step `at`, which is 0 first, and leaves there the step that waits for its letter. True at the end.
bool advance(std::span<const Step> steps, std::size_t& at, Carrier& carrier);

}  // namespace farsum::trees
