// Times a non-blocking allreduce beside computing, the same way whoever makes it. A Job is as measure.hpp says, and
// begins one: begin, is_over, which says so once and for all, and wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "reduce/cases/call.hpp"
#include "reduce/cases/computing.hpp"
#include "reduce/cases/overlap_percent.hpp"
#include "reduce/cases/samples.hpp"
#include "reduce/cases/values.hpp"

namespace collectives {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The vectors of one rank, and the calls with them.
template <class Job>
class BegunAllreduce {
 public:
  BegunAllreduce(const Job& job, const Call& call)
      : job_(job), call_(call), mine_(call.elements()), result_(call.elements()) {}

  void check() {
    if (call_.kind != Kind::allreduce) job_.fail("only an allreduce is begun here, no " + call_.name());
    for (int round = 0; round < checked_rounds; ++round) {
      for (std::size_t i = 0; i < mine_.size(); ++i) mine_[i] = brought(job_.rank(), i, round);
      std::fill(result_.begin(), result_.end(), -1);
      begin();
      finish();
      for (std::size_t i = 0; i < result_.size(); ++i) {
        if (result_[i] != sum_of(job_.size(), i, round)) job_.fail(call_.name() + ", begun, gave a wrong answer");
      }
    }
  }

  void begin() { begun_ = job_.begin(mine_.data(), result_.data(), mine_.size()); }
  [[nodiscard]] bool is_over() { return job_.is_over(begun_); }
  void wait() { job_.wait(begun_); }
  // As a program that asks before it waits.
  void finish() {
    if (!is_over()) wait();
  }

 private:
  static constexpr int checked_rounds = 3;

  const Job& job_;
  const Call call_;
  std::vector<double> mine_;
  std::vector<double> result_;
  typename Job::Begun begun_{};
};

// Whether all ranks have measured for so long; they agree.
template <class Job>
class TimeUp {
 public:
  TimeUp(const Job& job, double seconds) : job_(job), seconds_(seconds), start_(Clock::now()) {}
  [[nodiscard]] bool is_over() const {
    return job_.largest(std::chrono::duration<double>(Clock::now() - start_).count()) >= seconds_;
  }

 private:
  const Job& job_;
  const double seconds_;
  const Clock::time_point start_;
};

// One rank's times, a number of each for each round.
struct OverlapSamples {
  std::vector<double> pure_us;       // begun and waited for
  std::vector<double> alone_us;      // the computing
  std::vector<double> computing_us;  // the same, with a call under way
  std::vector<double> stretched_us;  // begun, computed and asked once whether it is over
  std::vector<double> whole_us;      // until it is over
  std::vector<double> late;          // 1 where it was not over when asked
};

// All ranks compute as long while the call is under way.
template <class Job>
class Overlap {
 public:
  Overlap(const Job& job, const Call& call) : job_(job), allreduce_(job, call), computing_(computing_us) {}

  Figures measure(double seconds) {
    allreduce_.check();
    for (int i = 0; i < warm_rounds; ++i) go_round();
    samples_ = {};
    const TimeUp<Job> time(job_, seconds);
    do {
      for (int i = 0; i < rounds_a_look; ++i) go_round();
    } while (!time.is_over());
    return figures();
  }

 private:
  static constexpr double computing_us = 1000;
  static constexpr int warm_rounds = 3;
  static constexpr int rounds_a_look = 10;

  void go_round() {
    samples_.pure_us.push_back(timed([&] {
      allreduce_.begin();
      allreduce_.wait();
    }));
    samples_.alone_us.push_back(timed([&] { computing_.run(); }));
    samples_.whole_us.push_back(timed([&] { overlap(); }));
  }

  template <class Work>
  double timed(Work&& work) const {
    job_.barrier();
    const Clock::time_point start = Clock::now();
    work();
    return us_since(start);
  }

  void overlap() {
    const Clock::time_point start = Clock::now();
    allreduce_.begin();
    const Clock::time_point begun = Clock::now();
    computing_.run();
    samples_.computing_us.push_back(us_since(begun));
    const bool is_over = allreduce_.is_over();
    samples_.stretched_us.push_back(us_since(start));
    samples_.late.push_back(is_over ? 0 : 1);
    if (!is_over) allreduce_.wait();
  }

  // OSU's is of means over the ranks, IMB's of the rank that takes longest in the whole; here both of each rank's
  // medians.
  Figures figures() const {
    const double pure = median(samples_.pure_us);
    const double alone = median(samples_.alone_us);
    const double computing = median(samples_.computing_us);
    const double stretched = median(samples_.stretched_us);
    const double whole = median(samples_.whole_us);
    const double imb = imb_percent({.pure_us = pure, .computing_us = computing, .whole_us = whole});
    const OverlapTimes means{.pure_us = mean_over_ranks(pure),
                             .computing_us = mean_over_ranks(computing),
                             .whole_us = mean_over_ranks(whole)};
    const bool is_last = whole == job_.largest(whole);
    return {{"cost", job_.largest(stretched / alone)},
            {"pure_us", means.pure_us},
            {"alone_us", mean_over_ranks(alone)},
            {"stretched_us", mean_over_ranks(stretched)},
            {"over", 1 - job_.largest(mean_over_rounds(samples_.late))},
            {"osu", osu_percent(means)},
            {"imb", job_.largest(is_last ? imb : 0)},
            {"rounds", static_cast<double>(samples_.late.size())}};
  }

  [[nodiscard]] static double mean_over_rounds(const std::vector<double>& numbers) {
    return distribution_of(numbers).mean;
  }
  [[nodiscard]] double mean_over_ranks(double mine) const {
    double all = 0;
    job_.allreduce(&mine, &all, 1);
    return all / job_.size();
  }

  const Job& job_;
  BegunAllreduce<Job> allreduce_;
  const Computing computing_;
  OverlapSamples samples_;
};

// The rank in the middle has begun the call and computes on; the others wait for the result, to which it contributes,
// and which in a tree it would have to pass on.
template <class Job>
class Middle {
 public:
  Middle(const Job& job, const Call& call) : job_(job), allreduce_(job, call), computing_(computing_us) {}

  Figures measure(double seconds) {
    allreduce_.check();
    for (int i = 0; i < warm_rounds; ++i) go_round();
    waited_us_.clear();
    const TimeUp<Job> time(job_, seconds);
    do {
      for (int i = 0; i < rounds_a_look; ++i) go_round();
    } while (!time.is_over());
    std::vector<double> slowest(waited_us_.size());
    job_.largest(waited_us_.data(), slowest.data(), slowest.size());
    return {{"waited_us", median(slowest)}, {"rounds", static_cast<double>(slowest.size())}};
  }

 private:
  static constexpr double computing_us = 10'000;
  static constexpr int warm_rounds = 2;
  static constexpr int rounds_a_look = 5;

  void go_round() {
    const bool computes = job_.rank() == job_.size() / 2;
    job_.barrier();
    const Clock::time_point start = Clock::now();
    allreduce_.begin();
    if (computes) computing_.run();
    allreduce_.wait();
    waited_us_.push_back(computes ? 0 : us_since(start));
  }

  const Job& job_;
  BegunAllreduce<Job> allreduce_;
  const Computing computing_;
  std::vector<double> waited_us_;
};

}  // namespace collectives
