// Paper 3's shared-counter kernel: ranks draw task numbers from a counter at rank 0 and work on them. How long a number
// takes, while rank 0 works too (case 1), while it waits in a barrier (case 2), and with a helper thread blocked in MPI
// (case 3).
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/timing.hpp"
#include "counters.hpp"
#include "helper_thread.hpp"

namespace lab {
namespace {

constexpr int owner_computes = 1;
constexpr int owner_waits = 2;
constexpr int owner_has_helper = 3;

struct Options {
  std::vector<std::string> implementations = counter_implementations();
  std::vector<std::string> memories{"allocate", "create"};
  std::vector<int> cases{owner_computes, owner_waits, owner_has_helper};
  std::vector<std::string> shapes{"equal", "irregular"};
  int tasks_per_rank = 20;
  double task_us = 2000;
  int repeats = 5;
  unsigned seed = 1;
  bool json = false;
};

// What the root learns of one run of all ranks.
struct Outcome {
  std::vector<double> gets_us;        // of ranks other than the owner, or of the only one
  std::vector<double> owner_gets_us;  // of rank 0
  // Of gets_us, those whose number follows one that the same rank drew, and one that another rank drew: then the
  // counter is in that one's cache.
  std::vector<double> after_own_us;
  std::vector<double> after_another_us;
  double total_ms = 0;
};

// The work of each task in microseconds. Irregular ones are spread like shell quartets: many short, few long; their sum
// is the same for every run of one seed, whoever draws them.
std::vector<double> task_lengths(const Options& options, const std::string& shape, int tasks) {
  std::vector<double> lengths(static_cast<std::size_t>(tasks), options.task_us);
  if (shape == "irregular") {
    std::mt19937_64 engine(options.seed);
    for (double& length : lengths) {
      const double uniform = static_cast<double>(engine() >> 11U) * 0x1.0p-53;
      length = -std::log(1.0 - uniform);
    }
    const double scale = options.task_us * tasks / std::accumulate(lengths.begin(), lengths.end(), 0.0);
    for (double& length : lengths) {
      length *= scale;
    }
  }
  return lengths;
}

class Kernel {
 public:
  Kernel(const Session& session, BusyWork work) : session_(session), work_(work) {}

  // One loop over all tasks; every rank returns, the root with what all saw. Stops the job if a number came twice or
  // never.
  Outcome run(Counter& counter, int kernel_case, const std::vector<double>& lengths) {
    counter.reset();
    tickets_.clear();
    gets_us_.clear();
    std::unique_ptr<HelperThread> helper;
    if (kernel_case == owner_has_helper) {
      helper = std::make_unique<HelperThread>();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    if (kernel_case != owner_waits || session_.rank() != 0 || session_.size() == 1) {
      draw_and_work(counter, lengths);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double total_ms = (now_ns() - start) / 1e6;
    helper.reset();
    return collect(total_ms, static_cast<long>(lengths.size()));
  }

 private:
  void draw_and_work(Counter& counter, const std::vector<double>& lengths) {
    for (;;) {
      const double start = now_ns();
      const long ticket = counter.next();
      gets_us_.push_back((now_ns() - start) / 1e3);
      tickets_.push_back(ticket);
      if (ticket >= static_cast<long>(lengths.size())) {
        return;
      }
      if (ticket < 0) {
        fail("the counter handed out {}", ticket);
      }
      work_.run_us(lengths[static_cast<std::size_t>(ticket)]);
    }
  }

  Outcome collect(double total_ms, long tasks) {
    const std::size_t ranks = static_cast<std::size_t>(session_.size());
    const int count = static_cast<int>(tickets_.size());
    std::vector<int> counts(ranks);
    MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<int> offsets(ranks);
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
    const auto all = static_cast<std::size_t>(offsets.back()) + static_cast<std::size_t>(counts.back());
    std::vector<long> tickets(all);
    std::vector<double> gets(all);
    MPI_Gatherv(tickets_.data(), count, MPI_LONG, tickets.data(), counts.data(), offsets.data(), MPI_LONG, 0,
                MPI_COMM_WORLD);
    MPI_Gatherv(gets_us_.data(), count, MPI_DOUBLE, gets.data(), counts.data(), offsets.data(), MPI_DOUBLE, 0,
                MPI_COMM_WORLD);
    if (session_.rank() != 0) {
      return {};
    }
    check_tickets(tickets, tasks);
    const auto owners = gets.begin() + counts.front();
    Outcome outcome;
    outcome.gets_us.assign(owners, gets.end());
    outcome.owner_gets_us.assign(gets.begin(), owners);
    outcome.total_ms = total_ms;
    if (session_.size() == 1) {
      outcome.gets_us = outcome.owner_gets_us;
    }
    sort_by_drawer_before(tickets, gets, counts, outcome);
    return outcome;
  }

  // `tickets` and `gets` are those of all ranks, the owner's first, `counts` how many each has.
  static void sort_by_drawer_before(const std::vector<long>& tickets, const std::vector<double>& gets,
                                    const std::vector<int>& counts, Outcome& outcome) {
    std::vector<std::size_t> drawer(tickets.size());
    std::size_t place = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      for (int i = 0; i < counts[rank]; ++i) {
        drawer[static_cast<std::size_t>(tickets[place++])] = rank;
      }
    }
    for (auto i = static_cast<std::size_t>(counts.front()); i < tickets.size(); ++i) {
      const auto ticket = static_cast<std::size_t>(tickets[i]);
      if (ticket != 0) {
        const bool own = drawer[ticket - 1] == drawer[ticket];
        (own ? outcome.after_own_us : outcome.after_another_us).push_back(gets[i]);
      }
    }
  }

  // Every number from 0 on, once each, up to the last that any rank drew.
  static void check_tickets(std::vector<long> tickets, long tasks) {
    std::sort(tickets.begin(), tickets.end());
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      if (tickets[i] != static_cast<long>(i)) {
        fail("the counter is wrong: its number {} in order is {}", i, tickets[i]);
      }
    }
    if (static_cast<long>(tickets.size()) < tasks) {
      fail("{} tasks were drawn of {}", tickets.size(), tasks);
    }
  }

  const Session& session_;
  BusyWork work_;
  std::vector<long> tickets_;
  std::vector<double> gets_us_;
};

struct Setting {
  std::string implementation;
  std::string memory;
  std::string shape;
};

// The repetitions of one case, joined: a spread over all single gets and one over the totals.
class CaseResult {
 public:
  void add(const Outcome& outcome) {
    append(gets_us_, outcome.gets_us);
    append(owner_gets_us_, outcome.owner_gets_us);
    append(after_own_us_, outcome.after_own_us);
    append(after_another_us_, outcome.after_another_us);
    totals_ms_.push_back(outcome.total_ms);
    run_medians_us_.push_back(spread_of(outcome.gets_us).median);
  }

  [[nodiscard]] Spread gets() const { return spread_of(gets_us_); }
  [[nodiscard]] Spread owner_gets() const { return spread_of(owner_gets_us_); }
  [[nodiscard]] Spread after_own() const { return spread_of(after_own_us_); }
  [[nodiscard]] Spread after_another() const { return spread_of(after_another_us_); }
  [[nodiscard]] Spread run_medians() const { return spread_of(run_medians_us_); }
  [[nodiscard]] Spread totals() const { return spread_of(totals_ms_); }

 private:
  static void append(std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  std::vector<double> gets_us_;
  std::vector<double> owner_gets_us_;
  std::vector<double> after_own_us_;
  std::vector<double> after_another_us_;
  std::vector<double> run_medians_us_;
  std::vector<double> totals_ms_;
};

constexpr const char* no_threads = "n/a: this library gives no MPI_THREAD_MULTIPLE";

void tell_missing(const Report& report, const Setting& setting, int kernel_case) {
  report.measured({{"implementation", setting.implementation},
                   {"memory", setting.memory},
                   {"tasks", setting.shape},
                   {"case", kernel_case},
                   {"not_available", no_threads}},
                  fmt::format("{:<15} {:<9} {:<10} {}  {}", setting.implementation, setting.memory, setting.shape,
                              kernel_case, no_threads));
}

void tell(const Report& report, const Options& options, const Setting& setting, int kernel_case,
          const CaseResult& result) {
  const Spread gets = result.gets();
  const Spread medians = result.run_medians();
  const Spread totals = result.totals();
  const Record record{{"implementation", setting.implementation},
                      {"memory", setting.memory},
                      {"tasks", setting.shape},
                      {"case", kernel_case},
                      {"task_us", options.task_us},
                      {"tasks_per_rank", options.tasks_per_rank},
                      {"repeats", options.repeats},
                      {"get_us", gets},
                      {"get_us_after_own", result.after_own()},
                      {"get_us_after_another", result.after_another()},
                      {"get_us_run_medians", medians},
                      {"owner_get_us", result.owner_gets()},
                      {"total_ms", totals},
                      {"tickets", "distinct"}};
  report.measured(record, fmt::format("{:<15} {:<9} {:<10} {}  {:>8.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>12.3f} .. "
                                      "{:<10.3f} {:>9.2f}",
                                      setting.implementation, setting.memory, setting.shape, kernel_case, gets.median,
                                      gets.mean, result.after_own().median, result.after_another().median, medians.low,
                                      medians.high, totals.median));
}

void run_setting(const Session& session, const Options& options, const Report& report, Kernel& kernel,
                 const Setting& setting, Progress& progress) {
  const auto counter = make_counter(setting.implementation, memory_names().at(setting.memory), MPI_COMM_WORLD);
  // The answer comes before the clock: many numbers without work between them, where every race would show.
  kernel.run(*counter, owner_computes, std::vector<double>(static_cast<std::size_t>(200 * session.size()), 0.0));
  const auto lengths = task_lengths(options, setting.shape, options.tasks_per_rank * session.size());
  std::map<int, CaseResult> results;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {  // the cases in turn, so that drift meets all alike
    for (const int kernel_case : options.cases) {
      if (kernel_case == owner_has_helper && session.provided() < MPI_THREAD_MULTIPLE) {
        continue;
      }
      results[kernel_case].add(kernel.run(*counter, kernel_case, lengths));
      progress.tell(fmt::format("{} {} {}: repetition {} of {}", setting.implementation, setting.memory, setting.shape,
                                repeat + 1, options.repeats));
    }
  }
  for (const int kernel_case : options.cases) {
    const auto found = results.find(kernel_case);
    if (found == results.end()) {
      tell_missing(report, setting, kernel_case);
    } else {
      tell(report, options, setting, kernel_case, found->second);
    }
  }
}

void run_all(const Session& session, const Options& options) {
  const Report report(session, "lab-counter", options.json);
  report.say(fmt::format(
      "tasks of {} us, {} per rank; time per get in us of ranks other than the owner, also of those after a "
      "number of its own and after another rank's (medians), total in ms\n"
      "{:<15} {:<9} {:<10} {}  {:>5} {:>10} {:>10} {:>10} {:>29} {:>9}",
      options.task_us, options.tasks_per_rank, "implementation", "memory", "tasks", "case", "median", "mean",
      "after own", "another's", "median of runs, low .. high", "total"));
  double iterations_per_us = BusyWork::calibrated().iterations_per_us();
  MPI_Bcast(&iterations_per_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  Kernel kernel(session, BusyWork(iterations_per_us));
  Progress progress(session.speaks());
  for (const std::string& implementation : options.implementations) {
    for (const std::string& memory : options.memories) {
      if (!has_memory(implementation, memory_names().at(memory))) {
        continue;
      }
      for (const std::string& shape : options.shapes) {
        run_setting(session, options, report, kernel, {implementation, memory, shape}, progress);
      }
    }
  }
}

void declare_options(CommandLine& line, Options& options) {
  line.set_footer("Example: mpirun -n 2 lab-counter-" LAB_ABI
                  " --cases 1,2 --implementation fetch-op --tasks irregular");
  line.add_words("--implementation", options.implementations,
                 "per-rank-words, tree, fetch-op (default: these), bare (a locked addition to shared memory, no MPI)",
                 all_counters());
  line.add_memory(options.memories);
  line.add_numbers("--cases", options.cases,
                   "1: the owner computes; 2: it waits in a barrier; 3: as 1, with a helper thread", {1, 3});
  line.add_words("--tasks", options.shapes, "equal, irregular (default: both)", {"equal", "irregular"});
  line.add_number("--tasks-per-rank", options.tasks_per_rank, "how many tasks per rank", {1, 1000000});
  line.add_number("--task-us", options.task_us, "mean length of a task in microseconds", {0.0, 1e8});
  line.add_repeats(options.repeats, "repetitions of each case");
  line.add_any_number("--seed", options.seed, "of the irregular tasks");
  line.add_json(options.json);
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line(
      "Shared-counter kernel of paper 3: time to draw a task number while the counter's owner works or waits",
      "lab-counter-" LAB_ABI);
  declare_options(line, options);
  if (const auto status = line.parse(argc, argv)) {
    return *status;
  }
  const bool wants_threads = std::count(options.cases.begin(), options.cases.end(), owner_has_helper) != 0;
  const Session session(wants_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  run_all(session, options);
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
