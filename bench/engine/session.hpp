// What every case works with: the rank, the arena, the report, and the measurement in turn. Both ranks run each case
// side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arena.hpp"
#include "counters.hpp"
#include "harness.hpp"
#include "report.hpp"

namespace bench {

struct Options {
  bool quick = false;
  int pairs = 9;
};

// One side of a pair. Both ranks run it; rank 0's figure counts.
using Side = std::function<Sample()>;

class Session {
 public:
  Session(int rank, const Options& options, Arena& arena, Report& report)
      : rank_(rank), options_(options), arena_(arena), report_(report) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool is_root() const { return rank_ == 0; }
  [[nodiscard]] int peer() const { return 1 - rank_; }
  [[nodiscard]] const Options& options() const { return options_; }
  Arena& arena() { return arena_; }
  Report& report() { return report_; }

  // `full`, or a small part of it for --quick.
  [[nodiscard]] std::uint64_t scaled(std::uint64_t full) const { return options_.quick ? full / 20 + 1 : full; }
  [[nodiscard]] std::uint64_t slice_ns() const { return options_.quick ? 100'000 : 2'000'000; }

  // Measures limit, ours, limit, ours ... with a gate before each, fills in pairs and counters of `row`, and reports
  // it.
  void compare(Row row, const Side& limit, const Side& ours);

  // Rank 0 works; rank 1 sleeps until it has finished.
  [[nodiscard]] Side alone(const std::function<Sample()>& work) const;
  // Rank 0 works while rank 1 computes, with no system call, on its own processor.
  [[nodiscard]] Side while_peer_computes(const std::function<Sample()>& work);
  // Both run batches of `operations` at once, in slices of a millisecond or so; the figure is the operations per second
  // of both together, the median of the slices in which neither was preempted.
  [[nodiscard]] Side together(std::uint64_t operations, const std::function<void()>& batch);

 private:
  struct Measured {
    Sample sample;
    Counters counters;  // of both ranks
    std::uint64_t operations = 0;
  };
  Measured measure(const Side& side);
  bool run_slice(std::uint64_t operations, const std::function<void()>& batch, std::uint64_t& done, double& rate);

  int rank_;
  Options options_;
  Arena& arena_;
  Report& report_;
};

// Repeats `operation` and gives nanoseconds for each: the median over slices of the repetitions, so that a slice in
// which the scheduler took the processor away does not count.
template <class Operation>
Sample time_per_operation(std::uint64_t count, Operation&& operation) {
  constexpr std::uint64_t most_slices = 50;
  const std::uint64_t in_slice = (count + most_slices - 1) / most_slices;
  std::vector<double> slices;
  slices.reserve(most_slices);
  std::uint64_t i = 0;
  while (i < count) {
    const std::uint64_t end = std::min(count, i + in_slice);
    const auto operations = static_cast<double>(end - i);
    const std::uint64_t before = now_ns();
    for (; i < end; ++i) operation(i);
    slices.push_back(static_cast<double>(now_ns() - before) / operations);
  }
  return {.figure = median(slices), .operations = count};
}

// Does `operation` every `gap_ns`, waiting in between without a system call, and gives the median time of one.
Sample paced_latency(std::uint64_t count, std::uint64_t gap_ns, const std::function<void(std::uint64_t)>& operation);

}  // namespace bench
