// bench-ranks: how one-sided calls grow with the ranks of a node, each MPI library alone and with Farsum in turn,
// Farsum's C interface, and what bare processes reach. Started by `farsum bench ranks`; starts all ranks itself. Ends
// with 1 where a run of Farsum ended badly or with a wrong answer, never for a time, nor for what a library alone
// cannot do.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/lab.hpp"
#include "common/run_main.hpp"
#include "common/usable_processors.hpp"
#include "plan_run.hpp"
#include "rank_programs.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "session.hpp"

namespace bench {
namespace {

constexpr int signal_base = 128;
// Three turns of the usual ones are more than half a second.
constexpr double usual_seconds = 0.2;
constexpr double full_seconds = 0.5;
constexpr double quick_seconds = 0.01;

struct CommandLine {
  Options options;
  int cap_s = 60;
  bool json = false;
  std::string plot;
};

void declare(CLI::App& app, CommandLine& line) {
  Options& options = line.options;
  const auto is_row = [](const std::string& pattern) {
    Options one;
    one.rows = {pattern};
    one.ranks = {2};
    one.threads = {1};
    if (!plans_of(one).empty()) return std::string();
    std::string names;
    for (const ranks::Row& row : ranks::all_rows()) names += (names.empty() ? "" : ", ") + std::string(row.name);
    return fmt::format("there is no row {}; there are: {}", pattern, names);
  };
  app.add_option("--rows", options.rows,
                 "rows, as the shell's patterns, or groups of them (locks, windows, updates, transfers, threads)")
      ->delimiter(',')
      ->check(is_row);
  app.add_option("--ranks", options.ranks, "how many ranks (default: 2, 4, 8 ... up to the usable processors)")
      ->delimiter(',')
      ->check(CLI::Range(2, 256));
  app.add_option("--libraries", options.libraries,
                 "as `farsum lab` names them, and native for Farsum's C interface (default: all that are here)")
      ->delimiter(',');
  app.add_option("--threads", options.threads,
                 "how many threads a rank has in the rows with threads (default: half the processors, 2 to 8)")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_option("--pairs", options.pairs, "how often all take their turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds,
                 "of each row and turn, unless half a million operations take less (default: 0.2; with --full 0.5)")
      ->check(CLI::Range(0.001, 600.0));
  app.add_option("--cap-s", line.cap_s, "seconds after which the ranks of a group of rows are ended")
      ->check(CLI::Range(1, 36000))
      ->capture_default_str();
  app.add_flag("--full", options.full, "all rows on both kinds of memory, 1, 2, 4 and 8 threads, half a second a turn");
  app.add_flag("--quick", options.quick, "one short pair: to see that all runs, not for figures");
  app.add_flag("--oversubscribe", options.oversubscribe, "allow more ranks than usable processors");
  app.add_flag("--json", line.json, "a JSON object a line instead of the table");
  app.add_option("--plot", line.plot,
                 "draw the rows by ranks to this file (.svg, .png); its lines go beside it (.jsonl)");
  app.footer(
      "Examples:\n"
      "  farsum bench ranks\n"
      "  farsum bench ranks --rows 'lock-*,fence' --ranks 2,4,8,16 --json\n"
      "  farsum bench ranks --rows threads --libraries mpich,native --threads 1,2,4,8\n"
      "  farsum bench ranks --plot build/bench/ranks.svg\n"
      "Rows: those that are kept by ranks (locks, fence, windows, updates, transfers), and those of 2 ranks by "
      "threads.\n"
      "Exit code: 0; 1 a run of Farsum was wrong or ended badly; 2 wrong usage, or a library that is not here; 130\n"
      "interrupted, once what was done is printed.");
}

// Another name of a library that is measured anyway, by MPI's standard ABI.
bool is_second_name(const std::string& library) { return library.ends_with("-abi"); }

// What cannot be, in a sentence; empty where all can.
std::string choose_libraries(Options& options, const Lab& lab) {
  const std::set<std::string> here = lab.libraries_for("ranks");
  for (const std::string& name : options.libraries) {
    if (name != native_library && !here.contains(name)) {
      return fmt::format("lab-ranks cannot run under {} here; there are: native{}{}", name, here.empty() ? "" : ", ",
                         fmt::join(here, ", "));
    }
  }
  if (!options.libraries.empty()) return {};
  for (const char* name : {"mpich", "openmpi", "mpich5", "openmpi5", "impi"}) {
    if (!here.contains(name)) Report::progress(fmt::format("{} is not here", name));
  }
  for (const std::string& name : here) {
    if (!is_second_name(name)) options.libraries.push_back(name);
  }
  options.libraries.emplace_back(native_library);
  return {};
}

std::string choose_ranks(Options& options, int usable) {
  if (options.ranks.empty()) {
    for (int ranks = 2; ranks <= std::max(2, usable) && ranks <= 256; ranks *= 2) options.ranks.push_back(ranks);
  }
  for (const int ranks : options.ranks) {
    if (ranks > usable && !options.oversubscribe) {
      return fmt::format("{} ranks are more than the {} processor{} that may be used; --oversubscribe allows it", ranks,
                         usable, usable == 1 ? "" : "s");
    }
  }
  return {};
}

void choose_threads(Options& options, int usable) {
  if (!options.threads.empty()) return;
  if (options.full)
    options.threads = {1, 2, 4, 8};
  else
    options.threads = {std::clamp(usable / 2, 2, 8)};
}

void choose_length(Options& options) {
  if (options.quick) options.pairs = 1;
  if (options.seconds > 0) return;
  options.seconds = options.quick ? quick_seconds : options.full ? full_seconds : usual_seconds;
}

// A descriptor that can be read once somebody wants an end. From here on no signal of these ends this program by
// itself.
int open_stop() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const int fd = signalfd(-1, &ends, SFD_CLOEXEC);
  if (fd < 0) throw std::runtime_error("no descriptor for signals is to be had");
  return fd;
}

int exit_code_of_stop(int stop) {
  signalfd_siginfo told{};
  return signal_base + (read(stop, &told, sizeof told) == sizeof told ? static_cast<int>(told.ssi_signo) : SIGINT);
}

std::string points_file(const std::string& figure) {
  return figure.empty() ? figure : std::filesystem::path(figure).replace_extension(".jsonl").string();
}

// Runs the script of the source tree that this program was built in, or says how to.
void draw(const std::string& folder, const std::string& figure) {
  const std::filesystem::path script = std::filesystem::path(folder) / "../../bench/ranks/plot.py";
  const std::string points = points_file(figure);
  const std::string command = fmt::format("/usr/bin/python3 -B '{}' '{}' --out '{}'", script.string(), points, figure);
  if (std::filesystem::exists(script) && std::filesystem::exists("/usr/bin/python3") &&
      std::system(command.c_str()) == 0)
    return;
  Report::progress(
      fmt::format("no figure was drawn, for that takes Python and its matplotlib: where they are, "
                  "bench/ranks/plot.py {} --out {} does it",
                  points, figure));
}

Machine machine_of(const Options& options, const Runner& runner, const std::string& folder) {
  Machine machine = this_machine();
  for (const std::string& library : options.libraries) {
    if (library != native_library) {
      machine.libraries.emplace_back(library, runner.version_of(library));
      continue;
    }
    std::string version = run_capped({.words = {folder + "/farsum", "--version"}}).output;
    machine.libraries.emplace_back(library, version.substr(0, version.find('\n')));
  }
  return machine;
}

// False where it was interrupted.
bool measure_all(const Options& options, const Machine& machine, const Runner& runner, Report& report) {
  const std::vector<Plan> plans = plans_of(options);
  std::vector<PlanRun> runs;
  Progress progress;
  for (const Plan& plan : plans) {
    runs.emplace_back(options, machine, runner, plan);
    progress.all_starts += runs.back().starts();
  }
  for (PlanRun& run : runs) {
    const bool is_whole = run.measure(report, progress);
    run.tell(report);
    if (!is_whole) return false;
  }
  return true;
}

int measure(CommandLine& line, const std::string& folder) {
  const int stop = open_stop();
  const Lab lab(folder, std::int64_t{line.cap_s} * 1000, stop);
  const Runner runner(lab, line.options.seconds);
  Report report(line.json, points_file(line.plot));
  const Machine machine = machine_of(line.options, runner, folder);
  report.header(machine);
  const bool is_whole = measure_all(line.options, machine, runner, report);
  if (!line.plot.empty()) draw(folder, line.plot);
  if (!is_whole) return exit_code_of_stop(stop);
  report.summary();
  return report.has_failed() ? 1 : 0;
}

int run(int argc, char** argv) {
  if (const auto status = run_rank_program(argc, argv)) return *status;
  CommandLine line;
  CLI::App app(
      "How one-sided calls grow with the ranks of a node: each MPI library alone and with Farsum in turn, Farsum "
      "itself, and what bare processes reach.",
      "bench-ranks");
  declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_wrong_usage;
  }
  Options& options = line.options;
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  const int usable = usable_processors();
  choose_length(options);
  choose_threads(options, usable);
  std::string refusal = choose_ranks(options, usable);
  if (refusal.empty()) refusal = choose_libraries(options, Lab(folder, std::int64_t{line.cap_s} * 1000));
  if (!refusal.empty()) {
    fmt::print(stderr, "bench-ranks: {}\n", refusal);
    return exit_wrong_usage;
  }
  return measure(line, folder);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_main("bench-ranks", [&] { return bench::run(argc, argv); });
}
