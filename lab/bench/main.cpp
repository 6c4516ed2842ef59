// The timing kernels of `farsum bench mpi`: two ranks, one line of JSON per kernel, memory and state of the owner. Each
// answer is checked before its time is taken. To compare libraries, or with and without Farsum, run it in turn and
// compare its lines.
#include <fnmatch.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"
#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/timing.hpp"

namespace lab {
namespace {

struct Options {
  std::vector<std::string> patterns{"*"};
  std::vector<std::string> skipped;
  std::vector<std::string> memories{"allocate", "create"};
  std::vector<std::string> owners{"idle", "computing"};
  std::string idle_in = "recv";
  int repeats = 5;
  double repeat_ms = 10;
  double compute_ms = 20;
  bool list = false;
  bool json = true;
};

class Driver {
 public:
  Driver(const Options& options, const Bench& bench) : options_(options), bench_(bench) {}

  // Both ranks: prepares, runs a few operations and looks at what they left.
  void verify(const Case& what, Kernel& kernel) const {
    constexpr long operations = 3;
    exclusively_at_home([&] { kernel.prepare(); });
    MPI_Barrier(bench_.pair);
    if (calls(what)) {
      open(what);
      kernel.run(operations);
      close(what);
    }
    MPI_Barrier(bench_.pair);
    bool right = true;
    if (what.callers == Callers::both && what.epoch == Epoch::none && what.bytes >= large_window) {
      right = kernel.check(operations);  // may make a window: no epoch may be open
    } else {
      exclusively_at_home([&] { right = kernel.check(operations); });
    }
    if (!all_agree(right, bench_.pair)) {
      fail("{} on {} memory gives a wrong answer", what.name, name_of(bench_.memory));
    }
  }

  // Nanoseconds per operation, one value per repetition; empty at the owner.
  std::vector<double> time_idle(const Case& what, Kernel& kernel) const {
    if (what.callers == Callers::both) {
      return time_together(kernel);
    }
    std::vector<double> times;
    if (is_origin()) {
      open(what);
      const long operations = calibrate([&](long count) { kernel.run(count); });
      for (int repeat = 0; repeat < options_.repeats; ++repeat) {
        times.push_back(timed(operations, [&](long count) { kernel.run(count); }));
      }
      close(what);
      release_owner();
    } else {
      wait_for_release();
    }
    return times;
  }

  // The owner computes for a bounded time and makes no MPI call meanwhile; what the origin completes in that time
  // counts, and at least one operation.
  std::vector<double> time_computing(const Case& what, Kernel& kernel) const {
    const double compute_for_ns = options_.compute_ms * 1e6;
    std::vector<double> times;
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      if (is_origin()) {
        open(what);  // while the owner still makes progress
      }
      MPI_Barrier(bench_.pair);
      if (is_origin()) {
        constexpr double head_start = 0.05;
        constexpr double used_share = 0.75;
        compute_ns(head_start * compute_for_ns);
        times.push_back(time_until(used_share * compute_for_ns, kernel));
        release_owner();
        close(what);
      } else {
        compute_ns(compute_for_ns);
        wait_for_release();
      }
      MPI_Barrier(bench_.pair);
    }
    return times;
  }

 private:
  static constexpr std::size_t large_window = std::size_t{1} << 20U;
  static constexpr int token_tag = 7;

  [[nodiscard]] bool is_origin() const { return bench_.rank == origin_rank; }
  [[nodiscard]] bool calls(const Case& what) const { return is_origin() || what.callers == Callers::both; }
  void open(const Case& what) const {
    if (what.epoch == Epoch::lock_all) {
      MPI_Win_lock_all(0, bench_.win);
    }
  }
  void close(const Case& what) const {
    if (what.epoch == Epoch::lock_all) {
      MPI_Win_unlock_all(bench_.win);
    }
  }

  // Local accesses to the own window are well-defined in an epoch of one's own.
  template <typename Action>
  void exclusively_at_home(Action action) const {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, bench_.rank, 0, bench_.win);
    action();
    MPI_Win_unlock(bench_.rank, bench_.win);
  }

  void release_owner() const {
    if (options_.idle_in == "barrier") {
      MPI_Barrier(bench_.pair);
    } else {
      MPI_Send(nullptr, 0, MPI_BYTE, owner_rank, token_tag, bench_.pair);
    }
  }
  void wait_for_release() const {
    if (options_.idle_in == "barrier") {
      MPI_Barrier(bench_.pair);
    } else {
      MPI_Recv(nullptr, 0, MPI_BYTE, origin_rank, token_tag, bench_.pair, MPI_STATUS_IGNORE);
    }
  }

  template <typename Run>
  static double timed(long operations, Run run) {
    const double start = now_ns();
    run(operations);
    return (now_ns() - start) / static_cast<double>(operations);
  }

  // How many operations fill a repetition.
  template <typename Run>
  [[nodiscard]] long calibrate(Run run) const {
    const double wanted_ns = options_.repeat_ms * 1e6;
    constexpr long most = 1L << 24U;
    for (long operations = 1;; operations *= 4) {
      const double each_ns = timed(operations, run);
      if (each_ns * static_cast<double>(operations) > wanted_ns / 8 || operations >= most) {
        return std::clamp(static_cast<long>(wanted_ns / each_ns), 1L, most);
      }
    }
  }

  // Both ranks run the kernel as often as the origin says.
  std::vector<double> time_together(Kernel& kernel) const {
    std::vector<double> times;
    const auto run_both = [&](long count) {
      MPI_Bcast(&count, 1, MPI_LONG, origin_rank, bench_.pair);
      kernel.run(count);
    };
    if (is_origin()) {
      const long operations = calibrate(run_both);
      for (int repeat = 0; repeat < options_.repeats; ++repeat) {
        times.push_back(timed(operations, run_both));
      }
      long stop = 0;
      MPI_Bcast(&stop, 1, MPI_LONG, origin_rank, bench_.pair);
      return times;
    }
    for (;;) {
      long count = 0;
      MPI_Bcast(&count, 1, MPI_LONG, origin_rank, bench_.pair);
      if (count == 0) {
        return times;
      }
      kernel.run(count);
    }
  }

  // Ever larger batches, none expected to last beyond the time that is left.
  static double time_until(double duration_ns, Kernel& kernel) {
    const double start = now_ns();
    long done = 0;
    long batch = 1;
    for (;;) {
      kernel.run(batch);
      done += batch;
      const double elapsed_ns = now_ns() - start;
      const double each_ns = elapsed_ns / static_cast<double>(done);
      const double left_ns = duration_ns - elapsed_ns;
      if (left_ns < each_ns) {
        return each_ns;
      }
      batch = std::clamp(static_cast<long>(left_ns / each_ns / 2), 1L, 2 * batch);
    }
  }

  const Options& options_;
  Bench bench_;
};

bool wanted(const Options& options, const std::string& name) {
  const auto matches = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
  return std::any_of(options.patterns.begin(), options.patterns.end(), matches) &&
         std::none_of(options.skipped.begin(), options.skipped.end(), matches);
}

// A case whose kernel has nothing to do with the window's memory or with the owner runs once.
bool applies(const Options& options, const Case& what, const std::string& memory, const std::string& owner) {
  const bool windowless = what.callers == Callers::origin_locally || what.name.starts_with("win-");
  if (windowless && memory != options.memories.front()) {
    return false;
  }
  return what.callers == Callers::origin || owner == "idle";
}

void tell(const Report& report, const Options& options, const Case& what, const std::string& memory,
          const std::string& owner, const std::vector<double>& times) {
  const Spread spread = spread_of(times);
  const double megabytes_per_s = static_cast<double>(what.bytes) / spread.median * 1e3;
  Record record{
      {"case", what.name}, {"memory", memory}, {"owner", owner}, {"bytes", what.bytes}, {"ns", spread.median}};
  record.push_back({"ns_low", spread.low});
  record.push_back({"ns_high", spread.high});
  if (what.bytes != 0) {
    record.push_back({"MBps", megabytes_per_s});
  }
  record.push_back({"repeats", options.repeats});
  report.measured(record, fmt::format("{:<28} {:<9} {:<10} {:>13.1f} {:>13.1f} .. {:<13.1f} {:>10}", what.name, memory,
                                      owner, spread.median, spread.low, spread.high,
                                      what.bytes == 0 ? "-" : fmt::format("{:.1f}", megabytes_per_s)));
}

void run_memory(const Options& options, const Report& report, MPI_Comm pair, const std::string& memory) {
  const Window window(memory_names().at(memory), window_bytes, 1, pair);
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(4096, window_bytes), &std::free);
  Bench bench{.pair = pair,
              .rank = 0,
              .memory = memory_names().at(memory),
              .win = window.win(),
              .window_memory = window.as<void>(),
              .buffer = static_cast<std::byte*>(buffer.get()),
              .bytes = window_bytes};
  MPI_Comm_rank(pair, &bench.rank);
  const Driver driver(options, bench);
  for (const Case& what : all_cases()) {
    if (!wanted(options, what.name)) {
      continue;
    }
    std::unique_ptr<Kernel> kernel;
    for (const std::string& owner : options.owners) {
      if (!applies(options, what, memory, owner)) {
        continue;
      }
      if (kernel == nullptr) {
        kernel = what.make(bench, what.bytes);
        driver.verify(what, *kernel);
      }
      const auto times = owner == "idle" ? driver.time_idle(what, *kernel) : driver.time_computing(what, *kernel);
      tell(report, options, what, memory, owner, times);
    }
  }
}

void run_all(const Session& session, const Options& options) {
  if (session.size() < 2) {
    fail("two ranks are needed: mpirun -n 2 ...");
  }
  const Report report(session, "lab-bench", options.json);
  report.say(fmt::format("{:<28} {:<9} {:<10} {:>13} {:>13} .. {:<13} {:>10}", "case", "memory", "owner", "ns", "low",
                         "high", "MB/s"));
  const bool in_pair = session.rank() < 2;
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, in_pair ? 0 : MPI_UNDEFINED, session.rank(), &pair);
  if (in_pair) {
    for (const std::string& memory : options.memories) {
      run_memory(options, report, pair, memory);
    }
    MPI_Comm_free(&pair);
  }
  if (session.size() > 2) {
    polite_barrier(MPI_COMM_WORLD);  // the ranks that only watch
  }
}

void declare_options(CommandLine& line, Options& options) {
  line.set_footer("Example: mpirun -n 2 lab-bench-" LAB_ABI
                  " --cases 'put-*,fetch-and-op' --memory create --owner computing");
  line.add_words("--cases", options.patterns, "names or patterns of cases, as the shell's (default: all; see --list)");
  line.add_words("--skip", options.skipped,
                 "names or patterns of cases to leave out, such as those that a library dies of");
  line.add_flag("--list", options.list, "print the names of the cases and end");
  line.add_memory(options.memories);
  line.add_words("--owner", options.owners, "idle (blocked in MPI), computing (no MPI call for a while); default: both",
                 {"idle", "computing"});
  line.add_word("--idle-in", options.idle_in, "where an idle owner is blocked: recv, barrier", {"recv", "barrier"});
  line.add_repeats(options.repeats, "repetitions of each measurement");
  line.add_number("--repeat-ms", options.repeat_ms, "length of a repetition in milliseconds", {0.01, 60000.0});
  line.add_number("--compute-ms", options.compute_ms, "how long a computing owner makes no MPI call", {0.1, 10000.0});
  line.add_flag("--json,!--table", options.json, "one JSON object a line (the default), or a table for people");
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("Times of one-sided calls between two ranks, each answer checked first", "lab-bench-" LAB_ABI);
  declare_options(line, options);
  if (const auto status = line.parse(argc, argv)) {
    return *status;
  }
  if (options.list) {
    for (const Case& what : all_cases()) {
      fmt::print("{}\n", what.name);
    }
    return 0;
  }
  const Session session(MPI_THREAD_SINGLE);
  run_all(session, options);
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
