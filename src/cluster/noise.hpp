// Daemons that take processors away from those who compute on them: processes in virtual time that go on whatever is
// called, so that a call finds them where the call before it left them. Pure: the same seed gives the same runs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace farsum::cluster {

// After all times that are reached, with room to add to it.
inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max() / 2;

struct Noise {
  double load = 0;                     // of a processor's time, below 1; 0: there are no daemons
  std::int64_t length_ns = 1'000'000;  // of each run
  double share = 1;                    // of the nodes, which have daemons at all
  std::uint64_t seed = 1;
};

// A number that depends on each bit of both.
std::uint64_t hash(std::uint64_t seed, std::uint64_t number);
// The same number as a fraction, from 0 to below 1.
double fraction(std::uint64_t hash);

struct Interval {
  std::int64_t begin_ns = never_ns;
  std::int64_t end_ns = never_ns;
};

// Runs of one length with pauses between them, which are distributed as those of events that know nothing of one
// another. Run k is a function of the key and k, and only the current one is kept.
class Daemon {
 public:
  // Without load it never runs.
  Daemon(const Noise& noise, std::uint64_t key);
  // The first run that ends after t, which never falls from call to call.
  Interval first_after(std::int64_t t);

 private:
  void next();

  std::uint64_t key_;
  double mean_pause_ns_ = 0;
  std::int64_t length_ns_;
  std::uint64_t count_ = 0;
  Interval run_;
};

// A processor that does one work after the other, whenever no daemon has it.
class Processor {
 public:
  // No daemon ever runs here.
  Processor() = default;
  // Daemons of the node take its idle processor first, where there is one: this one then is lost only while the idle
  // one's daemon runs as well.
  explicit Processor(const Daemon& own, const std::optional<Daemon>& idle_ones = std::nullopt)
      : own_(own), idle_ones_(idle_ones) {}

  // When work that may begin at `start` is done: after so much time in which no daemon had the processor. Work of
  // no length is done when there is none. What was asked for before is done first.
  std::int64_t work(std::int64_t start, std::int64_t length_ns);
  // No daemon takes it from t until then; t never falls.
  std::int64_t quiet_until(std::int64_t t) { return lost_after(t).begin_ns; }

 private:
  Interval lost_after(std::int64_t t);
  Interval overlap_after(std::int64_t t);

  std::optional<Daemon> own_;
  std::optional<Daemon> idle_ones_;
  Interval lost_{0, 0};
  std::int64_t free_from_ns_ = 0;
};

}  // namespace farsum::cluster
