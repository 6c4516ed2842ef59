#include "reduce/cases/computing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace collectives {
namespace {

using Clock = std::chrono::steady_clock;

// Each step needs the one before. Nobody knows what the first begins with, and what comes of the last is stored, so
// that a compiler has to make them all.
void compute(long steps) {
  volatile const double first = 0.5;
  double number = first;
  for (long step = 0; step < steps; ++step) number = number * 0.999 + 0.001;
  [[maybe_unused]] volatile const double result = number;
}

double us_of(long steps) {
  const Clock::time_point start = Clock::now();
  compute(steps);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

Computing::Computing(double us) {
  constexpr long first_steps = 1000;
  constexpr int tries = 5;
  long steps = first_steps;
  while (us_of(steps) < us / 2) steps *= 2;
  double least = us_of(steps);
  for (int i = 1; i < tries; ++i) least = std::min(least, us_of(steps));
  steps_ = std::lround(static_cast<double>(steps) * us / least);
}

void Computing::run() const { compute(steps_); }

}  // namespace collectives
