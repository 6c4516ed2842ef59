// bench-mpi: one-sided MPI programs without and with Farsum, on two ranks of one node (the automaton on four, too).
// Started by `farsum bench mpi`; starts the launchers of the MPI libraries itself. Ends with 1 where a run with Farsum
// ended badly or with a wrong answer, never for a time, nor for what a library alone cannot do.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/lab.hpp"
#include "common/run_main.hpp"
#include "rank_with_loop.hpp"
#include "session.hpp"

namespace bench {
namespace {

constexpr int exit_wrong_usage = 2;

struct CommandLine {
  Options options;
  int cap_s = 60;
  bool json = false;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("--cases", line.options.patterns,
                 "rows, cases or ROW/CASE, as the shell's patterns (rows: allocate, nwchem, create, owner-computing, "
                 "path, counter, automaton; beside)")
      ->delimiter(',');
  app.add_option("--libraries", line.options.libraries,
                 "as `farsum lab` names them (default: mpich5,openmpi5,impi, those that are here)")
      ->delimiter(',');
  app.add_option("--pairs", line.options.pairs,
                 "pairs of without and with per row (default: 9 for allocate, 5, counter 3)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--cap-s", line.cap_s, "seconds after which a run is ended")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--beside", line.options.beside,
                 "instead: each library beside busy loops, one a processor, that are outside the ranks' sessions or "
                 "inside; or beside nothing")
      ->delimiter(',')
      ->check(CLI::IsMember({"nothing", "outside", "inside"}));
  app.add_option("--ranks", line.options.ranks, "how many ranks are beside them (default: 2,4)")
      ->delimiter(',')
      ->check(CLI::Range(2, 128));
  app.add_flag("--quick", line.options.quick, "one short pair: to see that all runs, not for figures");
  app.add_flag("--json", line.json, "a JSON object a line instead of the table");
  app.footer(
      "  farsum bench mpi --cases 'create/put-*,counter'\n"
      "  farsum bench mpi --libraries mpich,openmpi --quick\n"
      "  farsum bench mpi --libraries mpich,openmpi --beside outside,inside --cases 'lock-*,NWChem*'");
}

// Those asked for must be there; of the usual ones those that are, and without them Debian's.
std::string choose_libraries(Options& options, const Lab& lab) {
  const std::set<std::string> here = lab.libraries_for("bench");
  const auto take = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (here.contains(name)) options.libraries.push_back(name);
    }
  };
  for (const std::string& name : options.libraries) {
    if (!here.contains(name)) {
      return fmt::format("lab-bench cannot run under {} here; there are: {}", name, fmt::join(here, ", "));
    }
  }
  if (options.libraries.empty()) take({"mpich5", "openmpi5", "impi"});
  if (options.libraries.empty()) take({"mpich", "openmpi"});
  return options.libraries.empty() ? "there is no MPI library here that lab-bench was built for" : std::string();
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app("One-sided MPI programs without and with Farsum in turn, per library; the limit is the fastest without.",
               "bench-mpi");
  declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_wrong_usage;
  }
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const Lab lab(folder.string(), std::int64_t{line.cap_s} * 1000);
  const std::string refusal = choose_libraries(line.options, lab);
  if (!refusal.empty()) {
    fmt::print(stderr, "bench-mpi: {}\n", refusal);
    return exit_wrong_usage;
  }
  Report report(line.json);
  const Session session{.options = line.options, .lab = lab, .report = report};
  if (line.options.beside.empty()) {
    run_calls(session);
    run_counter(session);
    run_automaton(session);
  } else {
    run_beside(session);
  }
  report.summary();
  return report.failed() ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], bench::with_loop_word) == 0) return bench::run_rank_with_loop(argc, argv);
  return bench::run_main("bench-mpi", [&] { return bench::run(argc, argv); });
}
