#include "measured.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/usable_processors.hpp"
#include "rank_programs.hpp"
#include "reduce/cases/samples.hpp"
#include "rows.hpp"

namespace bench {
namespace {

constexpr double most_hand_overs = 3;
constexpr double most_by_ranks = 1.1;  // of the time in the usual order
constexpr double usual_seconds = 0.1;

// Of one call on so many ranks.
struct MeasuredCall {
  collectives::Call call;
  int ranks = 2;
  int hosts = 0;
  std::string places = {};
  std::optional<double> ours_us;  // the median of the turns
  std::optional<double> by_ranks_us;
  std::optional<double> dedicated_us;
  std::map<std::string, double> peers_us;
};

std::vector<MeasuredCall> calls_of(const ContestOptions& options, const Contest& contest,
                                   const std::vector<std::string>& names, int ranks) {
  std::vector<MeasuredCall> calls;
  calls.reserve(names.size());
  for (const std::string& name : names) {
    calls.push_back({.call = *collectives::call_named(name),
                     .ranks = ranks,
                     .hosts = options.hosts,
                     .places = places_of(options, ranks),
                     .ours_us = contest.median_of(farsum_name, name, "us"),
                     .by_ranks_us = contest.median_of(by_ranks_name, name, "us"),
                     .dedicated_us = contest.median_of(dedicated_name, name, "us"),
                     .peers_us = contest.peers_of(name, "us")});
  }
  return calls;
}

// Of the best peer's time, on this machine.
double aim_here(const MeasuredCall& of) {
  const int usable = usable_processors();
  if (of.ranks == 2 && of.call.bytes == sizeof(double)) return 0.8;
  return of.ranks >= 16 && of.ranks <= usable ? 0.8 : 1.2;
}

// Over hosts, of 1 to 8 elements and of 1 MiB; all else is shown and not judged.
std::optional<double> aim_over_hosts(const MeasuredCall& of) {
  constexpr std::size_t few_elements = 8;
  constexpr std::size_t long_bytes = std::size_t{1} << 20;
  if (of.call.elements() > 0 && of.call.elements() <= few_elements) return 1.15;
  return of.call.bytes == long_bytes ? std::optional(0.95) : std::nullopt;
}

Json beside_peers(const MeasuredCall& of) {
  Json object = beside_best({.name = fmt::format("{}, {}", of.call.name(), of.places),
                             .ours = of.ours_us,
                             .aim = of.hosts == 0 ? aim_here(of) : aim_over_hosts(of)},
                            of.peers_us);
  object["ranks"] = of.ranks;
  object["bytes"] = of.call.bytes;
  return object;
}

// What another choice of ours costs; nothing where it was not measured.
void append_choice(std::vector<Json>& rows, const MeasuredCall& of, const std::optional<double>& chosen_us, Row row) {
  if (!of.ours_us || !chosen_us) return;
  row.name = fmt::format("{}, {}, {}", of.call.name(), of.places, row.name);
  row.ours = chosen_us;
  row.limit = of.ours_us;
  rows.push_back(json_of(row));
}

void append_choices(std::vector<Json>& rows, const MeasuredCall& of) {
  const bool folds = of.call.kind <= collectives::Kind::reduce_scatter;
  if (folds)
    append_choice(rows, of, of.by_ranks_us,
                  {.name = "order of ranks", .aim = most_by_ranks, .peer = "the usual order"});
  append_choice(rows, of, of.dedicated_us, {.name = "dedicated agent", .peer = "agents that sleep"});
}

// The turns of two bare processes.
class HandOvers {
 public:
  void take_turn(const Lab& lab, double seconds) {
    const LabOutcome outcome =
        lab.run_words({lab.folder() + "/bench-reduce", bare_word, "--seconds", fmt::format("{:.6f}", seconds)});
    for (const Json& record : outcome.records) us_.push_back(record.at("hand_over_us"));
  }

  // How the least allreduce of two ranks compares with what it cannot do without.
  void append_row(std::vector<Json>& rows, const MeasuredCall& of) const {
    const bool is_least = of.ranks == 2 && of.hosts == 0 && of.call.name() == "allreduce/8";
    if (!is_least || !of.ours_us || us_.empty()) return;
    rows.push_back(json_of({.name = "allreduce/8, 2 ranks, beside a hand-over of a line",
                            .ours = of.ours_us,
                            .limit = collectives::median(us_),
                            .aim = most_hand_overs,
                            .peer = "bare processes"}));
  }

 private:
  std::vector<double> us_;
};

// Over the rows above the least vectors on 2 ranks, whose aim is the best peer in the mean.
std::optional<Json> mean_of(const std::vector<MeasuredCall>& calls) {
  double logs = 0;
  int count = 0;
  for (const MeasuredCall& of : calls) {
    const auto best = best_of(of.peers_us, Better::lower);
    if (of.ranks != 2 || of.hosts > 0 || of.call.bytes <= sizeof(double) || !best || !of.ours_us) continue;
    logs += std::log(*of.ours_us / best->second);
    ++count;
  }
  if (count == 0) return std::nullopt;
  Json object = json_of({.name = "64 B and more, 2 ranks, geometric mean",
                         .ours = std::exp(logs / count),
                         .limit = 1,
                         .aim = 1,
                         .unit = "ratio",
                         .peer = "the best of each row"});
  object["rows"] = count;
  return object;
}

}  // namespace

std::vector<std::string> measured_calls() {
  std::vector<std::string> names;
  std::ranges::transform(collectives::all_calls(), std::back_inserter(names),
                         [](const collectives::Call& call) { return call.name(); });
  return names;
}

Measured measure_calls(const ContestOptions& options, const Lab& lab, const TestHosts& hosts) {
  Measured measured;
  const std::vector<std::string> names = rows_wanted(options, measured_calls());
  const double seconds = options.seconds.value_or(usual_seconds);
  const int turns = options.pairs.value_or(usual_turns);
  std::vector<MeasuredCall> all;
  for (const int ranks : ranks_or(options, {2, 4, 8})) {
    Contest contest(
        options, lab, hosts,
        {.way = collectives::Way::in_a_row, .ranks = ranks, .seconds = seconds, .calls = names, .turns = turns});
    HandOvers hand_overs;
    for (int turn = 1; turn <= turns; ++turn) {
      contest.take_turn(turn, measured.failures);
      if (ranks == 2 && options.hosts == 0) hand_overs.take_turn(lab, seconds);
    }
    for (const MeasuredCall& of : calls_of(options, contest, names, ranks)) {
      measured.rows.push_back(beside_peers(of));
      append_choices(measured.rows, of);
      hand_overs.append_row(measured.rows, of);
      all.push_back(of);
    }
  }
  if (const auto mean = mean_of(all)) measured.rows.push_back(*mean);
  return measured;
}

}  // namespace bench
