#include "steadied.hpp"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/busy_loops.hpp"
#include "rows.hpp"

namespace bench {
namespace {

constexpr double most_deviation = 0.2;
constexpr int raised_nice = -10;

// What one contender's calls of one kind took, all turns together.
Json distribution_of(const Contest& contest, const std::string& who, const std::string& call) {
  Json distribution = Json::object();
  for (const char* name :
       {"calls", "mean_us", "deviation_us", "kept_mean_us", "p50_us", "p90_us", "p99_us", "p999_us", "most_us"})
    distribution[name] = contest.median_of(who, call, name).value_or(0);
  std::map<double, double> counts;
  const std::vector<double> froms = contest.said(who, call, "from_us");
  const std::vector<double> in_bins = contest.said(who, call, "in_bin");
  for (std::size_t i = 0; i < froms.size(); ++i) counts[froms[i]] += in_bins[i];
  distribution["bins"] = counts;
  return distribution;
}

Json distributions_of(const Contest& contest, const std::string& call) {
  Json all = Json::object();
  for (const Contender& contender : contest.contenders()) {
    if (!contest.said(contender.name, call, "calls").empty())
      all[contender.name] = distribution_of(contest, contender.name, call);
  }
  return all;
}

// Beside the peer that has the least of it.
Json least_of(const Contest& contest, const std::string& call, const char* name, const char* who, Row row) {
  row.ours = contest.median_of(who, call, name);
  return beside_best(std::move(row), contest.peers_of(call, name));
}

void append_cell(std::vector<Json>& rows, const Contest& contest, const std::string& call, const std::string& cell) {
  const Json distributions = distributions_of(contest, call);
  for (const auto& [who, choice] : {std::pair(farsum_name, ""), std::pair(dedicated_name, ", dedicated agent")}) {
    if (!distributions.contains(who)) continue;
    const std::string name = fmt::format("steadiness of {}, {}{}: ", call, cell, choice);
    rows.push_back(
        least_of(contest, call, "deviation_us", who, {.name = name + "standard deviation", .aim = most_deviation}));
    if (who == farsum_name) rows.back()["distributions"] = distributions;
    rows.push_back(least_of(contest, call, "mean_us", who, {.name = name + "mean"}));
    rows.push_back(least_of(contest, call, "p999_us", who, {.name = name + "999 of 1000 are shorter"}));
  }
}

}  // namespace

std::vector<std::string> steady_calls(const ContestOptions& options) {
  return options.rows.empty() ? std::vector<std::string>{"allreduce/8"} : measured_calls();
}

Measured measure_steadiness(const ContestOptions& options, const SteadyOptions& steadiness, const Lab& lab,
                            const TestHosts& hosts) {
  Measured measured;
  const std::vector<std::string> calls = rows_wanted(options, steady_calls(options));
  const BusyLoops hogs(steadiness.hogs);
  for (const int ranks : ranks_or(options, {2})) {
    for (const int nice : {0, raised_nice}) {
      if (nice != 0 && !collectives::may_be_nice(nice)) {
        fmt::print(stderr, "bench-reduce: no cells with raised priority, which this user may not have\n");
        continue;
      }
      Contest contest(options, lab, hosts,
                      {.way = collectives::Way::steady,
                       .ranks = ranks,
                       .seconds = options.seconds.value_or(usual_steady_seconds),
                       .calls = calls,
                       .turns = options.pairs.value_or(1),
                       .most_calls = steadiness.most_calls,
                       .nice = nice});
      contest.take_turns(measured.failures);
      const std::string cell = fmt::format("{}, {} hog{}{}", places_of(options, ranks), steadiness.hogs,
                                           steadiness.hogs == 1 ? "" : "s", nice == 0 ? "" : ", raised priority");
      for (const std::string& call : calls) append_cell(measured.rows, contest, call, cell);
    }
  }
  return measured;
}

}  // namespace bench
