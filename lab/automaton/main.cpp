// Paper 2's nine-point cellular automaton in plain MPI: a fixed field in bands of rows, 8 KB to each of two neighbours
// per step, inner rows computed while those travel. The speed-up over the sequential program, two-sided and one-sided.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/timing.hpp"
#include "exchanges.hpp"

namespace lab {
namespace {

struct Options {
  std::vector<std::string> modes = exchange_names();
  std::vector<std::string> memories{"allocate", "create"};
  int width = 1024;  // 8 KB a row
  int rows = 1024;
  int steps = 200;
  int repeats = 5;
  bool json = false;
};

// One way to run: a mode and where its window lies.
struct Variant {
  std::string mode;
  std::string memory;
  std::vector<double> times_ms;
};

class Automaton {
 public:
  Automaton(const Session& session, const Options& options)
      : session_(session),
        options_(options),
        width_(static_cast<std::size_t>(options.width)),
        field_(first_row(session.rank()), first_row(session.rank() + 1) - first_row(session.rank()), width_),
        neighbours_{.above = (session.rank() + session.size() - 1) % session.size(),
                    .below = (session.rank() + 1) % session.size()} {}

  // Milliseconds of the sequential program, at rank 0 while the others leave it the machine.
  double run_sequential() {
    double time_ms = 0;
    if (session_.rank() == 0) {
      Field whole(0, static_cast<std::size_t>(options_.rows), width_);
      std::vector<Cell> above(width_);
      std::vector<Cell> below(width_);
      const double start = now_ns();
      for (int step = 0; step < options_.steps; ++step) {
        std::copy_n(whole.last(), width_, above.begin());
        std::copy_n(whole.first(), width_, below.begin());
        whole.compute_inner();
        whole.compute_outer(above.data(), below.data());
      }
      time_ms = (now_ns() - start) / 1e6;
      expected_ = whole.cells();
    }
    polite_barrier(MPI_COMM_WORLD);
    return time_ms;
  }

  // Milliseconds of one parallel run; the window is made before the clock starts. The result is compared bit for bit.
  double run(const Variant& variant) {
    field_.reset();
    const auto exchange = make_exchange(variant.mode, memory_names().at(variant.memory), width_, neighbours_);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (int step = 0; step < options_.steps; ++step) {
      exchange->begin(field_);
      field_.compute_inner();
      exchange->end();
      field_.compute_outer(exchange->from_above(), exchange->from_below());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double time_ms = (now_ns() - start) / 1e6;
    check(variant);
    return time_ms;
  }

 private:
  [[nodiscard]] std::size_t first_row(int rank) const {
    return static_cast<std::size_t>(options_.rows) * static_cast<std::size_t>(rank) /
           static_cast<std::size_t>(session_.size());
  }

  void check(const Variant& variant) const {
    std::vector<int> counts;
    std::vector<int> offsets;
    for (int rank = 0; rank < session_.size(); ++rank) {
      counts.push_back(static_cast<int>((first_row(rank + 1) - first_row(rank)) * width_));
      offsets.push_back(static_cast<int>(first_row(rank) * width_));
    }
    std::vector<Cell> whole(session_.rank() == 0 ? expected_.size() : 0);
    MPI_Gatherv(field_.cells().data(), static_cast<int>(field_.cells().size()), MPI_DOUBLE, whole.data(), counts.data(),
                offsets.data(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (session_.rank() == 0 && std::memcmp(whole.data(), expected_.data(), whole.size() * sizeof(Cell)) != 0) {
      const auto wrong = std::mismatch(whole.begin(), whole.end(), expected_.begin());
      fail("{} {}: the result differs from the sequential one, first in row {}", variant.mode, variant.memory,
           static_cast<std::size_t>(wrong.first - whole.begin()) / width_);
    }
  }

  const Session& session_;
  const Options& options_;
  std::size_t width_;
  Field field_;
  Neighbours neighbours_;
  std::vector<Cell> expected_;
};

std::vector<Variant> variants_of(const Options& options) {
  std::vector<Variant> variants;
  for (const std::string& mode : options.modes) {
    for (const std::string& memory : options.memories) {
      if (mode != "two-sided" || memory == options.memories.front()) {
        variants.push_back({.mode = mode, .memory = memory, .times_ms = {}});
      }
    }
  }
  return variants;
}

// The ratio of the sequential program's time to this one's, and of this one's to two-sided's, pair by pair.
void tell(const Report& report, const Options& options, const Variant& variant,
          const std::vector<double>& sequential_ms, const Variant* two_sided) {
  std::vector<double> speedups;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < variant.times_ms.size(); ++i) {
    speedups.push_back(sequential_ms[i] / variant.times_ms[i]);
    if (two_sided != nullptr) {
      ratios.push_back(variant.times_ms[i] / two_sided->times_ms[i]);
    }
  }
  const Spread time = spread_of(variant.times_ms);
  const Spread speedup = spread_of(speedups);
  const Spread ratio = spread_of(ratios);
  const std::string memory = variant.mode == "two-sided" ? "-" : variant.memory;
  Record record{{"mode", variant.mode},   {"memory", memory},
                {"rows", options.rows},   {"row_bytes", options.width * static_cast<int>(sizeof(Cell))},
                {"steps", options.steps}, {"repeats", options.repeats},
                {"time_ms", time},        {"sequential_ms", spread_of(sequential_ms)},
                {"speedup", speedup},     {"identical", true}};
  if (two_sided != nullptr) {
    record.push_back({"time_over_two_sided", ratio});
  }
  report.measured(record, fmt::format("{:<12} {:<9} {:>10.2f} {:>8.2f} {:>7.2f} .. {:<6.2f} {:>10}", variant.mode,
                                      memory, time.median, speedup.median, speedup.low, speedup.high,
                                      two_sided == nullptr ? "-" : fmt::format("{:.3f}", ratio.median)));
}

void run_all(const Session& session, const Options& options) {
  const Report report(session, "lab-automaton", options.json);
  if (options.rows < session.size()) {
    fail("{} rows are too few for {} ranks", options.rows, session.size());
  }
  Automaton automaton(session, options);
  Progress progress(session.speaks());
  std::vector<Variant> variants = variants_of(options);
  automaton.run_sequential();  // warms up, and gives the result to compare with
  for (const Variant& variant : variants) {
    automaton.run(variant);
  }
  std::vector<double> sequential_ms;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {  // all in turn, so that drift meets all alike
    sequential_ms.push_back(automaton.run_sequential());
    for (Variant& variant : variants) {
      variant.times_ms.push_back(automaton.run(variant));
      progress.tell(
          fmt::format("{} {}: repetition {} of {}", variant.mode, variant.memory, repeat + 1, options.repeats));
    }
  }
  report.say(fmt::format("{} rows of {} bytes, {} steps; sequential {:.2f} ms\n{:<12} {:<9} {:>10} {:>8} {:>17} {:>10}",
                         options.rows, options.width * sizeof(Cell), options.steps, spread_of(sequential_ms).median,
                         "mode", "memory", "time/ms", "speed-up", "low .. high", "/two-sided"));
  const auto two_sided = std::find_if(variants.begin(), variants.end(),
                                      [](const Variant& variant) { return variant.mode == "two-sided"; });
  for (const Variant& variant : variants) {
    tell(report, options, variant, sequential_ms, two_sided == variants.end() ? nullptr : &*two_sided);
  }
}

void declare_options(CommandLine& line, Options& options) {
  line.set_footer("Example: mpirun -n 2 lab-automaton-" LAB_ABI " --modes two-sided,pscw --memory create");
  line.add_words("--modes", options.modes, "two-sided, pscw, lock-unlock, fence, notify, notify-late (default: all)",
                 exchange_names());
  line.add_memory(options.memories);
  line.add_number("--width", options.width, "cells of 8 bytes in a row; 1024 are the paper's 8 KB", {3, 1 << 20});
  line.add_number("--rows", options.rows, "rows of the whole field, whatever the number of ranks", {1, 1 << 20});
  line.add_number("--steps", options.steps, "steps of each run", {1, 1000000});
  line.add_repeats(options.repeats, "runs of each mode");
  line.add_json(options.json);
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line(
      "Nine-point cellular automaton of paper 2: speed-up over the sequential program, one-sided and two-sided",
      "lab-automaton-" LAB_ABI);
  declare_options(line, options);
  if (const auto status = line.parse(argc, argv)) {
    return *status;
  }
  const Session session(MPI_THREAD_SINGLE);
  run_all(session, options);
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
