#include "kernel.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "../common/statistics.hpp"

namespace counter {

namespace {

using Clock = std::chrono::steady_clock;

double us_between(Clock::time_point earlier, Clock::time_point later) {
  return std::chrono::duration<double, std::micro>(later - earlier).count();
}

// What one rank saw.
struct Log {
  std::vector<std::uint64_t> tickets;
  std::vector<double> get_us;
  std::vector<double> work_us;
};

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void draw_and_compute(const Run& run, const Options& options, Counter& counter, Work& work, Log& log) {
  while (true) {
    const Clock::time_point asked = Clock::now();
    const std::uint64_t ticket = counter.next();
    const Clock::time_point got = Clock::now();
    log.tickets.push_back(ticket);
    log.get_us.push_back(us_between(asked, got));
    if (ticket >= run.task_count) return;
    work.compute(task_ms(run.tasks, options.work_ms, options.seed, ticket));
    log.work_us.push_back(us_between(got, Clock::now()));
  }
}

void summarise(const Log& log, RankTimes& times) {
  times.gets = log.get_us.size();
  times.tasks = log.work_us.size();
  times.get_mean_us = mean(log.get_us);
  times.get_median_us = median(log.get_us);
  times.get_max_us = largest(log.get_us);
  times.work_mean_ms = mean(log.work_us) * 1e-3;
  times.work_max_ms = largest(log.work_us) * 1e-3;
}

}  // namespace

Counter::Counter(apps::CounterKind kind, int home, std::uint64_t limit) {
  apps::require(counter_.create(kind, home, limit));
}

Counter::~Counter() {
  if (!apps::is_unwinding()) static_cast<void>(counter_.free());
}

Outcome run_kernel(const apps::Job& job, const Run& run, const Options& options, Counter& counter, Work& work) {
  Log log;
  log.tickets.reserve(run.task_count + 1);
  log.get_us.reserve(run.task_count + 1);
  log.work_us.reserve(run.task_count);
  RankTimes times{};

  job.barrier();
  const farsum_statistics before = apps::read_statistics();
  job.barrier();
  const Clock::time_point start = Clock::now();
  const bool only_waits = run.number == 2 && job.rank() == options.home;
  if (!only_waits) draw_and_compute(run, options, counter, work, log);
  const Clock::time_point done = Clock::now();
  job.barrier();
  const Clock::time_point all_done = Clock::now();

  times.statistics = apps::difference(apps::read_statistics(), before);
  times.barrier_ms = us_between(done, all_done) * 1e-3;
  times.total_ms = us_between(start, all_done) * 1e-3;
  summarise(log, times);

  Outcome outcome;
  outcome.ranks = job.gather(times);
  outcome.verdict = judge(job.gather_lists(std::move(log.tickets)), run.task_count, run.kind);
  return outcome;
}

}  // namespace counter
