#include "work.hpp"

#include <ctime>

#include <algorithm>
#include <array>
#include <cmath>

namespace counter {

namespace {

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// SplitMix64: any two tasks get unrelated bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Work::Work() : turns_per_ms_(0) {
  constexpr std::uint64_t sample_turns = 500'000;
  std::array<double, 5> samples{};
  for (double& sample : samples) {
    const double start = processor_ms();
    turn(sample_turns);
    sample = static_cast<double>(sample_turns) / std::max(processor_ms() - start, 1e-6);
  }
  std::sort(samples.begin(), samples.end());
  turns_per_ms_ = samples[samples.size() / 2];
}

void Work::compute(double ms) { turn(static_cast<std::uint64_t>(ms * turns_per_ms_)); }

void Work::turn(std::uint64_t turns) {
  constexpr std::uint64_t nn = 600;
  double sum = sum_;
  for (std::uint64_t n = 0; n < turns; ++n) {
    const std::uint64_t k = turned_++ % nn;
    sum += 23.7 * static_cast<double>(k) - static_cast<double>(k) / 2.8;
  }
  // Keeps the loop from being left out: its result is stored where the compiler cannot prove it unused.
  *const_cast<volatile double*>(&sum_) = sum;
}

double task_ms(Tasks tasks, double mean_ms, std::uint64_t seed, std::uint64_t task) {
  if (tasks == Tasks::equal) return mean_ms;
  const double uniform = static_cast<double>(mix(mix(seed) ^ task) >> 11) * 0x1p-53;
  return mean_ms * std::min(-std::log1p(-uniform), 5.0);
}

}  // namespace counter
