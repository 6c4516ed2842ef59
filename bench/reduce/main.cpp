// bench-reduce: reductions on this node beside those of MPI libraries, as paper 5's model has them, and as a simulated
// cluster with noise does. Started by `farsum bench reduce`; starts all ranks itself. Ends with 1 where a run of Farsum
// ended badly or with a wrong answer, never for a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/capped_run.hpp"
#include "common/lab.hpp"
#include "common/run_main.hpp"
#include "contest.hpp"
#include "measured.hpp"
#include "overlapped.hpp"
#include "own_machine.hpp"
#include "own_report.hpp"
#include "predictions.hpp"
#include "protocol_scale.hpp"
#include "rank_programs.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "scale.hpp"
#include "simulated.hpp"
#include "steadied.hpp"
#include "test_hosts.hpp"

namespace bench {
namespace {

constexpr int exit_skipped = 77;

struct CommandLine {
  bool measure = false;
  bool overlap = false;
  bool steady = false;
  bool model = false;
  bool simulate = false;
  bool scale = false;
  std::uint32_t protocol_ranks = 4096;
  ContestOptions contest;
  SteadyOptions steadiness;
  farsum::cluster::PaperRowOptions simulation;
  std::optional<std::size_t> calls;
  bool json = false;
  std::string plot;
};

// What is done, one of all.
struct Whats {
  CLI::Option* measure;
  CLI::Option* overlap;
  CLI::Option* steady;
  CLI::Option* simulate;
  CLI::Option* scale;
};

Whats declare_whats(CLI::App& app, CommandLine& line) {
  CLI::Option_group* what = app.add_option_group("What", "one of");
  Whats whats{};
  whats.measure = what->add_flag("--measure", line.measure,
                                 "collective calls on this node, Farsum's and those of MPI libraries in turn");
  whats.overlap = what->add_flag("--overlap", line.overlap,
                                 "the same of allreduces that nobody waits for, beside computing: of all ranks for "
                                 "1 ms, of the middle one for 10 ms");
  whats.steady = what->add_flag("--steady", line.steady,
                                "how much single calls differ in length beside busy processes, with and without "
                                "raised priority; a minute a cell");
  what->add_flag(
      "--model", line.model,
      "tables 1 and 2 of paper 5, its figures 2, 10 and 14 from their parameters, and what these miss; then "
      "table 2 and figures 2 and 10 of this machine, as far as `farsum info --model --measure` has measured it");
  whats.simulate = what->add_flag("--simulate", line.simulate,
                                  "its figures 1, 11, 12 and 13 and its table 3 from a simulated cluster with noise, "
                                  "two minutes or so");
  whats.scale = what->add_flag("--scale", line.scale,
                               "how fast a cluster of 16,384 nodes is simulated, and ranks of the protocol's own code, "
                               "and in how much memory");
  what->require_option(1);
  return whats;
}

// CLI11's `needs` wants all of what is named, not one of it.
void need_one_of(CLI::App& app, const std::vector<CLI::Option*>& options, const std::vector<CLI::Option*>& whats) {
  app.parse_complete_callback([options, whats] {
    const auto is_there = [](const CLI::Option* option) { return option->count() > 0; };
    const auto found = std::ranges::find_if(options, is_there);
    if (found == options.end() || std::ranges::any_of(whats, is_there)) return;
    std::string names;
    for (const CLI::Option* what : whats) names += (names.empty() ? "" : " or ") + what->get_name();
    throw CLI::RequiresError((*found)->get_name(), names);
  });
}

// What all that is measured on ranks takes.
void declare_contest(CLI::App& app, ContestOptions& options, const Whats& whats) {
  CLI::App* of_ranks = app.add_option_group("On ranks");
  const std::vector<CLI::Option*> declared{
      of_ranks
          ->add_option("--rows", options.rows,
                       "which calls, as the shell's patterns (allreduce/*, barrier; --steady: allreduce/8 if none)")
          ->delimiter(','),
      of_ranks->add_option("--ranks", options.ranks, "how many (default: 2, 4, 8; --overlap: 2, and 3; --steady: 2)")
          ->delimiter(',')
          ->check(CLI::Range(1, 256)),
      of_ranks->add_option("--libraries", options.libraries, "as `farsum lab` names them (default: all that are here)")
          ->delimiter(','),
      of_ranks
          ->add_option(
              "--hosts", options.hosts,
              "over so many test hosts of this machine instead (docs/notes/hosts.md; needs root), a rank on each by "
              "default, with a computing middle one two")
          ->check(CLI::Range(2, 26)),
      of_ranks->add_flag("--dedicated", options.dedicated, "Farsum also with FARSUM_AGENT=dedicated"),
      of_ranks->add_option("--pairs", options.pairs, "how often all take their turn (default: 3; --steady: 1)")
          ->check(CLI::Range(1, 1000)),
      of_ranks
          ->add_option("--seconds", options.seconds,
                       "of each call and turn (default: 0.1; --overlap: 0.5; --steady, at most: 60)")
          ->check(CLI::Range(0.0001, 600.0)),
      of_ranks->add_option("--cap-s", options.cap_s, "seconds after which a turn is ended (default: 120, or as needed)")
          ->check(CLI::Range(1, 36000))};
  need_one_of(*of_ranks, declared, {whats.measure, whats.overlap, whats.steady});
}

void declare(CLI::App& app, CommandLine& line) {
  const Whats whats = declare_whats(app, line);
  declare_contest(app, line.contest, whats);
  app.add_flag("--by-ranks", line.contest.by_ranks, "also with FARSUM_REDUCE_ORDER=ranks, beside the usual order")
      ->needs(whats.measure);
  app.add_option("--hogs", line.steadiness.hogs, "busy processes beside the job (default: 2)")
      ->needs(whats.steady)
      ->check(CLI::Range(0, 1024));
  CLI::Option* calls =
      app.add_option("--calls", line.calls, "of a point with noise; --steady: of a cell at most (default: 100,000)")
          ->check(CLI::Range(1, 10'000'000));
  need_one_of(app, {calls}, {whats.simulate, whats.steady});
  app.add_option("--seed", line.simulation.seed, "of the noise")->needs(whats.simulate);
  app.add_flag("--short", line.simulation.is_short, "few numbers of nodes, noise of one length")->needs(whats.simulate);
  app.add_option("--protocol-ranks", line.protocol_ranks, "how many, a node each (default: 4096)")
      ->needs(whats.scale)
      ->check(CLI::Range(2, 16384));
  app.add_flag("--json", line.json, "a JSON object a line instead of the tables");
  app.add_option("--plot", line.plot,
                 "draw the figures (of all but --measure and --scale) to this file (.svg, .png); their lines go beside "
                 "it (.jsonl)");
  app.footer(
      "Examples:\n"
      "  farsum bench reduce --measure --rows 'allreduce/*' --ranks 2\n"
      "  farsum bench reduce --overlap --libraries mpich5,openmpi5\n"
      "  farsum bench reduce --measure --hosts 2 --rows 'allreduce/*,reduce/*'\n"
      "  farsum bench reduce --steady --libraries mpich5 --seconds 5 --plot build/bench/steadiness.svg\n"
      "  farsum bench reduce --model\n"
      "  farsum bench reduce --model --json | grep 'best degree'\n"
      "  farsum bench reduce --model --plot build/bench/reduction-model.svg\n"
      "  farsum bench reduce --simulate --short --calls 2000\n"
      "Exit code: 0, also where the figure alone was not drawn; 1 its lines could not be written, or a run of\n"
      "Farsum was wrong or ended badly; 2 wrong usage, or a library that is not here; 77 there can be no test hosts.");
}

// The script is that of the source tree that this program was built in; without it, or without Python's matplotlib, it
// is said how to draw.
void draw(const std::string& lines, const char* script_name, const std::string& figure) {
  const std::filesystem::path points = std::filesystem::path(figure).replace_extension(".jsonl");
  if (points.has_parent_path()) std::filesystem::create_directories(points.parent_path());
  std::ofstream file(points);
  if (!(file << lines << std::flush)) throw std::runtime_error(fmt::format("cannot write {}", points.string()));
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path script = self.parent_path() / "../../bench/reduce" / script_name;
  const Outcome drawn =
      run_capped({.words = {"/usr/bin/python3", "-B", script.string(), points.string(), "--out", figure}});
  if (drawn.ending == Ending::good) return;
  fmt::print(stderr,
             "bench-reduce: no figure was drawn; bench/reduce/{} {} --out {} does it, with Python and matplotlib\n",
             script_name, points.string(), figure);
}

void model(const CommandLine& line) {
  const cost::ReductionModel& model = cost::paper_model();
  const Predictions predictions = predict_figures(model);
  const OwnMachine own = read_own_machine();
  const std::string lines = lines_of(model, predictions) + lines_of(own);
  fmt::print("{}", line.json ? lines : tables_of(model, predictions) + tables_of(own));
  if (line.json) fmt::print(stderr, "{}", missing_of(own));
  if (!line.plot.empty()) draw(lines, "plot.py", line.plot);
}

void simulate(const CommandLine& line) {
  farsum::cluster::PaperRowOptions options = line.simulation;
  if (line.calls) options.calls = *line.calls;
  const std::vector<farsum::cluster::PaperRow> rows = farsum::cluster::paper_rows(options);
  const std::string lines = lines_of(rows);
  fmt::print("{}", line.json ? lines : table_of(rows));
  if (!line.plot.empty()) draw(lines, "plot_simulated.py", line.plot);
}

std::vector<std::string> calls_of(const CommandLine& line) {
  if (line.overlap) return overlapped_calls();
  return line.steady ? steady_calls(line.contest) : measured_calls();
}

std::int64_t cap_ms_of(const CommandLine& line) {
  constexpr int usual_cap_s = 120;
  const double cell_s = line.contest.seconds.value_or(usual_steady_seconds);
  const auto cells = static_cast<double>(rows_wanted(line.contest, calls_of(line)).size());
  // A call of the last moment and the start of a job are long where others have the processors.
  const int needed_s = line.steady ? usual_cap_s + static_cast<int>(cells * cell_s) : usual_cap_s;
  return line.contest.cap_s.value_or(needed_s) * std::int64_t{1000};
}

Measured measured_of(const CommandLine& line, const Lab& lab, const TestHosts& hosts) {
  if (line.overlap) return measure_overlap(line.contest, lab, hosts);
  if (!line.steady) return measure_calls(line.contest, lab, hosts);
  SteadyOptions steadiness = line.steadiness;
  if (line.calls) steadiness.most_calls = *line.calls;
  return measure_steadiness(line.contest, steadiness, lab, hosts);
}

int measure(const CommandLine& line) {
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  const Lab lab(folder, cap_ms_of(line));
  if (const std::string reason = why_not(line.contest, lab, calls_of(line)); !reason.empty()) {
    fmt::print(stderr, "bench-reduce: {}\n", reason);
    return exit_wrong_usage;
  }
  const TestHosts hosts(folder, line.contest.hosts);
  if (!hosts.why_not().empty()) {
    fmt::print(stderr, "bench-reduce: {}\n", hosts.why_not());
    return exit_skipped;
  }
  const Measured measured = measured_of(line, lab, hosts);
  const Failures& failures = measured.failures;
  fmt::print("{}", line.json ? lines_of(measured.rows) : table_of(measured.rows, failures));
  for (const auto& [who, why] : failures.reasons) fmt::print(stderr, "bench-reduce: {}: {}\n", who, why);
  if (!line.plot.empty() && !line.measure)
    draw(lines_of(measured.rows), line.overlap ? "plot_overlap.py" : "plot_steadiness.py", line.plot);
  return failures.is_wrong ? 1 : 0;
}

int scale(const CommandLine& line) {
  const Scale measured = measure_scale();
  fmt::print("{}", line.json ? lines_of(measured) : text_of(measured));
  const ProtocolScale protocol = measure_protocol_scale(line.protocol_ranks, 20);
  fmt::print("{}", line.json ? lines_of(protocol) : text_of(protocol));
  return protocol.is_right ? 0 : 1;
}

int run(int argc, char** argv) {
  if (const auto status = run_rank_program(argc, argv)) return *status;
  CommandLine line;
  CLI::App app("Reductions of a vector from each node by a tree, as paper 5 has them.", "bench-reduce");
  declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_wrong_usage;
  }
  if (line.measure || line.overlap || line.steady) return measure(line);
  if (line.model) model(line);
  if (line.simulate) simulate(line);
  return line.scale ? scale(line) : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_main("bench-reduce", [&] { return bench::run(argc, argv); });
}
