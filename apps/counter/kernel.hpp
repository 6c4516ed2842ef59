// Paper 3's kernel: draw a ticket, compute its task, until the tasks are dealt out; every draw and task timed.
#pragma once

#include <cstdint>
#include <vector>

#include "../common/any_counter.hpp"
#include "../common/job.hpp"
#include "farsum.h"
#include "options.hpp"
#include "tickets.hpp"
#include "work.hpp"

namespace counter {

// One run of the kernel.
struct Run {
  int number;  // of the case: 1, 2 or 3
  apps::CounterKind kind;
  Tasks tasks;
  std::uint64_t task_count;
};

// What one rank did in a run. A plain record, gathered as bytes.
struct RankTimes {
  std::uint64_t gets;
  std::uint64_t tasks;
  double get_mean_us;
  double get_median_us;
  double get_max_us;
  double work_mean_ms;
  double work_max_ms;
  double barrier_ms;  // from this rank's last ticket until all are done
  double total_ms;
  farsum_statistics statistics;
};

struct Outcome {
  std::vector<RankTimes> ranks;
  Verdict verdict;
};

// The shared counter of one kind; collective in making, reset and end.
class Counter {
 public:
  Counter(apps::CounterKind kind, int home, std::uint64_t limit);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  [[nodiscard]] std::uint64_t next() {
    std::uint64_t ticket = 0;
    apps::require(counter_.next(&ticket));
    return ticket;
  }
  void reset() { apps::require(counter_.reset()); }

 private:
  apps::AnyCounter counter_;
};

// Runs the kernel and judges the tickets; collective, and every rank gets the outcome. The counter starts at 0.
[[nodiscard]] Outcome run_kernel(const apps::Job& job, const Run& run, const Options& options, Counter& counter,
                                 Work& work);

}  // namespace counter
