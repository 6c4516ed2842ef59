// Times single calls one by one, each behind a barrier, from the last rank's entry to the last one's return, as section
// 6.1 of paper 5 does. A Job is as measure.hpp says, and has the largest of many numbers at once. All ranks read one
// clock, so they are on one machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reduce/cases/measure.hpp"
#include "reduce/cases/overlap.hpp"
#include "reduce/cases/samples.hpp"

namespace collectives {

template <class Job>
class Steadiness {
 public:
  Steadiness(const Job& job, const Call& call) : job_(job), measurement_(job, call) {}

  // Calls one after the other, until there are so many or the time is up. What they took, in microseconds.
  std::vector<double> measure(double seconds, std::size_t most_calls) {
    measurement_.check();
    for (int warm = 0; warm < warm_calls; ++warm) time_one();
    entries_.clear();
    returns_.clear();
    // Any moment will do that is the same on all ranks.
    auto start = static_cast<double>(clock_ns());
    job_.broadcast(&start, 1, 0);
    start_ns_ = static_cast<std::int64_t>(start);
    const TimeUp<Job> time(job_, seconds);
    do {
      for (int i = 0; i < calls_a_look && entries_.size() < most_calls; ++i) time_one();
    } while (entries_.size() < most_calls && !time.is_over());
    return spans();
  }

 private:
  static constexpr int warm_calls = 10;
  static constexpr int calls_a_look = 16;
  static constexpr std::size_t numbers_at_once = 4096;

  [[nodiscard]] static std::int64_t clock_ns() { return Clock::now().time_since_epoch().count(); }
  // In nanoseconds since about when rank 0 began, which a double holds exactly.
  [[nodiscard]] double now_ns() const { return static_cast<double>(clock_ns() - start_ns_); }

  void time_one() {
    job_.barrier();
    entries_.push_back(now_ns());
    measurement_.make();
    returns_.push_back(now_ns());
  }

  void take_largest(std::vector<double>& numbers) const {
    std::vector<double> largest(numbers.size());
    for (std::size_t at = 0; at < numbers.size(); at += numbers_at_once)
      job_.largest(&numbers[at], &largest[at], std::min(numbers_at_once, numbers.size() - at));
    numbers = std::move(largest);
  }

  std::vector<double> spans() {
    take_largest(entries_);
    take_largest(returns_);
    std::vector<double> spans(entries_.size());
    for (std::size_t i = 0; i < spans.size(); ++i) spans[i] = (returns_[i] - entries_[i]) / 1000;
    return spans;
  }

  const Job& job_;
  Measurement<Job> measurement_;
  std::int64_t start_ns_ = 0;
  std::vector<double> entries_;
  std::vector<double> returns_;
};

// First what the times say together, then a line for each bin that holds any.
inline std::vector<Figures> steadiness_figures(const std::vector<double>& spans_us) {
  const Distribution all = distribution_of(spans_us);
  std::vector<Figures> lines{{{"calls", static_cast<double>(spans_us.size())},
                              {"mean_us", all.mean},
                              {"deviation_us", all.deviation},
                              {"kept_mean_us", all.kept_mean},
                              {"p50_us", quantile(spans_us, 0.5)},
                              {"p90_us", quantile(spans_us, 0.9)},
                              {"p99_us", quantile(spans_us, 0.99)},
                              {"p999_us", quantile(spans_us, 0.999)},
                              {"most_us", quantile(spans_us, 1)}}};
  for (const Bin& bin : all.bins) lines.push_back({{"from_us", bin.from}, {"in_bin", static_cast<double>(bin.count)}});
  return lines;
}

}  // namespace collectives
