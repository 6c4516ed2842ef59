// counter: paper 3's shared counter kernel over farsum.h, in its three cases, for every kind of counter.
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "../common/command_line.hpp"
#include "kernel.hpp"
#include "options.hpp"
#include "report.hpp"

namespace counter {

namespace {

// Why these options do not fit a job of this size, if they do not.
std::optional<std::string> complaint(const Options& options, int size) {
  if (options.home >= size) {
    return fmt::format("--home is {}, but the ranks are 0 to {}", options.home, size - 1);
  }
  if (size == 1 && options.cases == std::vector<int>{2}) {
    return "case 2 needs 2 ranks or more, because the owner of the counter only waits: farsum run -n 2 ...";
  }
  return std::nullopt;
}

bool fits(int number, int size) { return number != 2 || size > 1; }

// Runs everything asked for; whether all tickets were right.
bool run_all(const apps::Job& job, const Options& options, Work& work, nlohmann::json& results) {
  const std::uint64_t task_count = options.tasks_per_rank * static_cast<std::uint64_t>(job.size());
  bool right = true;
  for (const apps::CounterKind kind : options.kinds) {
    Counter counter(kind, options.home, task_count);
    for (const Tasks tasks : options.tasks) {
      for (const int number : options.cases) {
        if (!fits(number, job.size())) continue;
        const Run run{.number = number, .kind = kind, .tasks = tasks, .task_count = task_count};
        counter.reset();
        const Outcome outcome = run_kernel(job, run, options, counter, work);
        right = right && outcome.verdict.right;
        if (!job.is_root()) continue;
        if (options.json) {
          results.push_back(outcome_json(run, outcome, options));
        } else {
          print_outcome(run, outcome, options);
          std::fflush(stdout);
        }
      }
    }
  }
  return right;
}

int run(const Options& options) {
  const apps::Job job;
  if (const std::optional<std::string> sentence = complaint(options, job.size())) {
    return apps::refuse(job, "counter", *sentence);
  }
  Work work;
  nlohmann::json results = nlohmann::json::array();
  if (job.is_root() && !options.json) print_heading(options, job.size());
  const bool right = run_all(job, options, work, results);
  if (job.is_root() && options.json) {
    const nlohmann::json document = {{"program", "counter"}, {"ranks", job.size()}, {"work_ms", options.work_ms},
                                     {"seed", options.seed}, {"right", right},      {"results", results}};
    fmt::print("{}\n", document.dump(2));
  }
  std::fflush(stdout);
  return right ? apps::exit_right : apps::exit_wrong;
}

}  // namespace

}  // namespace counter

int main(int argc, char** argv) {
  counter::Options options;
  return apps::run_program("counter", [&] {
    if (const std::optional<int> code = counter::read_options(argc, argv, options)) return *code;
    return counter::run(options);
  });
}
