// bench-engine: how close Farsum comes to what the machine allows, on one node with two ranks. Started by `farsum bench
// engine`; started by itself it calls the launcher. Ends with 1 where an answer is wrong or something failed, never for
// a time.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cases.hpp"
#include "common/run_main.hpp"
#include "context.hpp"

namespace bench {
namespace {

constexpr std::array<Case, 11> cases = {{
    {"put-flush", "8-byte put + flush beside a store + full fence", run_put_flush},
    {"fetch-add", "64-bit fetch-and-add beside lock xadd", run_fetch_add},
    {"fetch-add-contended", "the same, two ranks on one word", run_fetch_add_contended},
    {"bulk-accumulate", "sums of doubles, 4 KiB to 8 MiB, beside a daxpy", run_bulk_accumulate},
    {"two-targets", "two ranks summing into two targets beside two daxpys", run_two_targets},
    {"owner-idle", "up to 64 B by the owner's agent beside a futex hand-over", run_owner_idle},
    {"owner-computing", "the same while the owner computes", run_owner_computing},
    {"owner-load", "rate of requests while the owner computes", run_owner_load},
    {"random-updates", "random XOR updates beside lock xor", run_random_updates},
    {"idle-job", "wake-ups of an agent that has nothing to do", run_idle_job},
    {"sum-bandwidth", "paper 1, figure 2: bandwidth of sum by size and path", run_sum_bandwidth},
}};

struct CommandLine {
  Options options;
  bool json = false;
  bool list = false;
  std::string plot;
  std::vector<std::string> names;
};

// Rank r stays on the r-th processor that it may use: its agent inherits that, so agent and owner share one core, the
// hard case. Where the launcher has bound the ranks already, or there is one processor, nothing changes.
void stay_on_processor(int rank) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < rank_count) return;
  int seen = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || seen++ != rank) continue;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(processor, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
  }
}

bool is_chosen(const Case& one, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
}

// The points of a figure lie beside it.
std::string points_file(const std::string& figure) {
  return figure.empty() ? std::string() : std::filesystem::path(figure).replace_extension(".jsonl").string();
}

void run_cases(const CommandLine& line, int rank) {
  std::unique_ptr<Arena> arena;
  {
    const Context context;
    arena = std::make_unique<Arena>(rank);
  }
  stay_on_processor(rank);
  Report report(rank == 0, line.json, points_file(line.plot));
  Session session(rank, line.options, *arena, report);
  const auto chosen =
      std::count_if(cases.begin(), cases.end(), [&](const Case& one) { return is_chosen(one, line.names); });
  int number = 0;
  for (const Case& one : cases) {
    if (!is_chosen(one, line.names)) continue;
    report.progress(fmt::format("{} of {}: {}, {}", ++number, chosen, one.name, one.about));
    one.run(session);
  }
  report.summary();
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  names.reserve(cases.size());
  for (const Case& one : cases) names.emplace_back(one.name);
  return names;
}

// Runs the plotting script of the source tree that this program was built in, or says how to.
void draw(const std::string& figure) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path script = self.parent_path() / "../../bench/plot_sum_bandwidth.py";
  const std::string points = points_file(figure);
  const std::string command = fmt::format("/usr/bin/python3 -B '{}' '{}' --out '{}'", script.string(), points, figure);
  if (!std::filesystem::exists(script) || std::system(command.c_str()) != 0) {
    fmt::print(stderr, "bench-engine: no figure was drawn; bench/plot_sum_bandwidth.py {} --out {} does it\n", points,
               figure);
  }
}

int launch_two_ranks(int argc, char** argv) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string launcher = self.parent_path() / "farsum";
  std::vector<std::string> words = {launcher, "run", "-n", "2", self};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(launcher.c_str(), pointers.data());
  fmt::print(stderr, "bench-engine: needs two ranks and cannot start {}: farsum run -n 2 {}\n", launcher,
             self.string());
  return 2;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app(
      "How close Farsum comes to what the machine allows: limit and ours in turn, the ratio of each row beside its "
      "aim.");
  app.add_option("--case", line.names, "only these; may be repeated")->check(CLI::IsMember(case_names()));
  app.add_flag("--quick", line.options.quick, "a twentieth of the work: to see that all runs, not for figures");
  app.add_option("--pairs", line.options.pairs, "pairs of limit and ours per row")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", line.json, "a JSON object a line instead of the table");
  app.add_option("--plot", line.plot, "draw sum-bandwidth to this file (.svg, .png); its points go beside it (.jsonl)");
  app.add_flag("--list", line.list, "print the names of the cases");
  app.footer(
      "  farsum bench engine --case fetch-add --case bulk-accumulate\n"
      "  farsum bench engine --case sum-bandwidth --plot build/bench/sum-bandwidth.svg");

  const char* rank_text = std::getenv("FARSUM_RANK");
  const int rank = rank_text == nullptr ? 0 : std::atoi(rank_text);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Only one rank says what is wrong.
    return rank == 0 ? app.exit(error) : error.get_exit_code() == 0 ? 0 : 2;
  }
  if (line.list) {
    for (const Case& one : cases) {
      if (rank == 0) fmt::print("{:<20} {}\n", one.name, one.about);
    }
    return 0;
  }
  if (rank_text == nullptr) return launch_two_ranks(argc, argv);
  const char* size_text = std::getenv("FARSUM_SIZE");
  if (size_text == nullptr || std::atoi(size_text) != rank_count) {
    if (rank == 0)
      fmt::print(stderr, "bench-engine: runs over two ranks, not {}\n", size_text == nullptr ? "?" : size_text);
    return 2;
  }
  if (line.options.quick) line.options.pairs = std::min(line.options.pairs, 5);
  const bool has_figure = is_chosen(cases.back(), line.names);
  if (!line.plot.empty() && !has_figure) {
    if (rank == 0)
      fmt::print(stderr, "bench-engine: --plot draws sum-bandwidth, which is not among the cases chosen\n");
    return 2;
  }
  run_cases(line, rank);
  if (rank == 0 && !line.plot.empty()) draw(line.plot);
  return 0;
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_main("bench-engine", [&] { return bench::run(argc, argv); });
}
