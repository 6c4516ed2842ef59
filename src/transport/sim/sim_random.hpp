// The simulator's only source of chance: the same seed gives the same numbers on every machine and standard library.
#pragma once

#include <cstdint>

namespace farsum {

// Virtual nanoseconds since the world began.
using SimTime = std::uint64_t;

// Both ends belong to it.
struct SimRange {
  SimTime low_ns = 0;
  SimTime high_ns = 0;
};

// splitmix64 (Steele, Lea, Flood 2014): one word of state, so that a generator can be copied and split for free.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix(state_);
  }
  // In [0, bound); bound 0 gives 0. The slight bias towards small numbers does not matter here.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  SimTime in(SimRange range) { return range.low_ns + below(range.high_ns - range.low_ns + 1); }
  // True once in `times` on average; never when `times` is 0.
  bool once_in(std::uint64_t times) { return times != 0 && below(times) == 0; }
  // A generator of its own, so that adding a draw in one place leaves the others' numbers alone.
  SimRandom split() { return SimRandom(next()); }

  static constexpr std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace farsum
