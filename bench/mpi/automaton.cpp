// Paper 2's automaton by lab-automaton: each one-sided way of moving the rows beside the two-sided one, in turn within
// one run of the program, on 2 ranks and on 4, which are more than the cores of a small machine. Times are of a step.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "session.hpp"

namespace bench {
namespace {

constexpr const char* automaton_row = "automaton";

struct Result {
  std::map<std::string, Figure> figures;  // by name of the case
  std::vector<std::string> names;         // in the program's order
  std::optional<double> two_sided_us;
  std::string note;
};

double value_at(const Json& record, const char* name, const char* of) { return record.at(name).at(of).get<double>(); }

double us_per_step(const Json& record) {
  return value_at(record, "time_ms", "median") * 1000 / record.at("steps").get<double>();
}

Figure figure_in(const Json& record, std::optional<double> two_sided_us) {
  Figure figure;
  figure.ours = us_per_step(record);
  figure.limit = two_sided_us;
  figure.ratio = value_at(record, "time_over_two_sided", "median");
  figure.ratio_low = value_at(record, "time_over_two_sided", "low");
  figure.ratio_high = value_at(record, "time_over_two_sided", "high");
  figure.pairs = record.at("repeats").get<std::size_t>();
  return figure;
}

Result run(const Session& session, const std::string& library, Side side, int ranks) {
  session.report.progress(fmt::format("automaton: {} ranks, {} {} Farsum", ranks, library, name_of(side)));
  const bool crowded = ranks > 2;
  const bool quick = session.options.quick;
  // A library alone that polls loses a time slice at each step on more ranks than cores.
  const bool slow = side == Side::without && crowded;
  LabRun lab_run{.program = "automaton", .library = library, .side = side, .ranks = ranks};
  const int repeats = slow ? 1 : side == Side::without ? std::min(session.pairs(5), 3) : session.pairs(5);
  lab_run.arguments = {"--steps", quick || slow ? "20" : "60", "--repeats", std::to_string(repeats)};
  const LabOutcome outcome = session.lab.run(lab_run);
  Result result;
  if (outcome.ending != Ending::good) {
    if (side == Side::with) {
      session.report.failure(
          fmt::format("{} with Farsum, automaton on {} ranks: {}\n{}", library, ranks, outcome.reason, outcome.errors));
    }
    result.note = fmt::format("{} {} Farsum: {}", library, name_of(side), outcome.reason);
    return result;
  }
  for (const Json& record : outcome.records) {
    const std::string mode = record.at("mode").get<std::string>();
    if (mode == "two-sided") {
      result.two_sided_us = us_per_step(record);
      continue;
    }
    const std::string name = fmt::format("{} ranks, {}, {}", ranks, mode, record.at("memory").get<std::string>());
    result.names.push_back(name);
    result.figures[name] = figure_in(record, result.two_sided_us);
  }
  return result;
}

void tell(const Session& session, const std::string& library, const Result& without, const Result& with) {
  for (const std::string& name : with.names) {
    const auto alone = without.figures.find(name);
    session.report.line({.row = automaton_row,
                         .name = name,
                         .library = library,
                         .peer = "two-sided",
                         .unit = "us",
                         .figure = with.figures.at(name),
                         .aim = never_slower,
                         .ratio_without = alone == without.figures.end() ? std::nullopt : alone->second.ratio,
                         .limit_without = without.two_sided_us,
                         .note = without.note});
  }
}

}  // namespace

void run_automaton(const Session& session) {
  for (const int ranks : {2, 4}) {
    if (!session.wants(automaton_row, fmt::format("{} ranks", ranks))) continue;
    for (const std::string& library : session.options.libraries) {
      const Result without = run(session, library, Side::without, ranks);
      tell(session, library, without, run(session, library, Side::with, ranks));
    }
  }
}

}  // namespace bench
