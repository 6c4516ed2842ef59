#include "cluster/noise.hpp"

#include <algorithm>
#include <cmath>

namespace farsum::cluster {
namespace {

// Daemons that hardly ever run at once are not followed further ahead than that.
constexpr std::int64_t horizon_ns = 1'000'000'000;

}  // namespace

// The finaliser of SplitMix64.
std::uint64_t hash(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t value = seed + (number + 1) * 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

double fraction(std::uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

Daemon::Daemon(const Noise& noise, std::uint64_t key) : key_(key), length_ns_(noise.length_ns) {
  if (noise.load <= 0) return;
  mean_pause_ns_ = static_cast<double>(noise.length_ns) * (1 - noise.load) / noise.load;
  run_ = {0, 0};
}

Interval Daemon::first_after(std::int64_t t) {
  while (run_.end_ns <= t) next();
  return run_;
}

void Daemon::next() {
  const double pause_ns = -mean_pause_ns_ * std::log1p(-fraction(hash(key_, count_++)));
  run_.begin_ns = run_.end_ns + std::llround(pause_ns);
  run_.end_ns = run_.begin_ns + length_ns_;
}

std::int64_t Processor::work(std::int64_t start, std::int64_t length_ns) {
  std::int64_t now = std::max(start, free_from_ns_);
  for (;;) {
    const Interval lost = lost_after(now);
    if (now + length_ns <= lost.begin_ns) break;
    length_ns -= std::max<std::int64_t>(0, lost.begin_ns - now);
    now = lost.end_ns;
  }
  free_from_ns_ = now + length_ns;
  return free_from_ns_;
}

Interval Processor::lost_after(std::int64_t t) {
  if (!own_) return {};
  if (lost_.end_ns <= t) lost_ = idle_ones_ ? overlap_after(t) : own_->first_after(t);
  return lost_;
}

// The first time after t in which both daemons run. One of no length says that there is none before it.
Interval Processor::overlap_after(std::int64_t t) {
  const std::int64_t horizon = t + horizon_ns;
  for (;;) {
    const Interval own = own_->first_after(t);
    const Interval other = idle_ones_->first_after(t);
    const Interval both{std::max(own.begin_ns, other.begin_ns), std::min(own.end_ns, other.end_ns)};
    if (both.begin_ns > horizon) return {horizon, horizon};
    if (both.begin_ns < both.end_ns) return both;
    t = both.end_ns;
  }
}

}  // namespace farsum::cluster
