#include "measured.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/usable_processors.hpp"
#include "engine/harness.hpp"
#include "rank_programs.hpp"

namespace bench {
namespace {

constexpr const char* program = "reduce";
constexpr const char* farsum_name = "farsum";
constexpr const char* by_ranks_name = "farsum, order of ranks";
constexpr const char* hand_over_name = "hand-over";
constexpr double most_hand_overs = 3;
constexpr double most_by_ranks = 1.1;  // of the time in the usual order

// Who makes the calls. A library stands twice where another choice of its own is worth seeing.
struct Contender {
  std::string name;
  std::string library;
  std::map<std::string, std::string> environment;
};

std::vector<Contender> contenders_of(const MeasureOptions& options, const Lab& lab) {
  const std::set<std::string> here = lab.libraries_for(program);
  std::vector<Contender> contenders{{.name = farsum_name, .library = {}, .environment = {}}};
  if (options.by_ranks)
    contenders.push_back({.name = by_ranks_name, .library = {}, .environment = {{"FARSUM_REDUCE_ORDER", "ranks"}}});
  for (const std::string& library : here) {
    const bool is_second_name = library.ends_with("-abi");
    if (options.libraries.empty() ? is_second_name
                                  : std::ranges::find(options.libraries, library) == options.libraries.end())
      continue;
    contenders.push_back({.name = library, .library = library, .environment = unbound_on_this_machine()});
    if (library != "openmpi5") continue;
    Contender preferred{.name = library + " (xhc, han)", .library = library, .environment = unbound_on_this_machine()};
    preferred.environment["OMPI_MCA_coll_xhc_priority"] = "100";
    preferred.environment["OMPI_MCA_coll_han_priority"] = "90";
    contenders.push_back(std::move(preferred));
  }
  return contenders;
}

std::vector<std::string> rows_wanted(const MeasureOptions& options) {
  std::vector<std::string> names;
  for (const collectives::Call& call : collectives::all_calls()) {
    const std::string name = call.name();
    const auto fits = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
    if (options.rows.empty() || std::ranges::any_of(options.rows, fits)) names.push_back(name);
  }
  return names;
}

// The turns of all contenders on so many ranks.
class Turns {
 public:
  Turns(const MeasureOptions& options, const Lab& lab, int ranks)
      : options_(options), lab_(lab), ranks_(ranks), calls_(rows_wanted(options)) {}

  void run(const std::vector<Contender>& contenders, MeasuredReductions& measured) {
    for (int turn = 1; turn <= options_.pairs; ++turn) {
      for (const Contender& contender : contenders) {
        if (failed_.contains(contender.name)) continue;
        fmt::print(stderr, "bench-reduce: {} ranks, turn {} of {}, {}\n", ranks_, turn, options_.pairs, contender.name);
        keep(contender, start(contender), measured);
      }
      if (ranks_ == 2) keep_hand_over();
    }
  }

  [[nodiscard]] std::vector<MeasuredRow> rows() const {
    std::vector<MeasuredRow> rows;
    for (const std::string& name : calls_) {
      MeasuredRow row;
      row.call = *collectives::call_named(name);
      row.ranks = ranks_;
      for (const auto& [key, figures] : figures_) {
        if (key.second != name) continue;
        if (key.first == farsum_name)
          row.ours_us = median(figures);
        else if (key.first == by_ranks_name)
          row.by_ranks_us = median(figures);
        else
          row.peers_us[key.first] = median(figures);
      }
      if (const auto found = figures_.find({hand_over_name, hand_over_name}); found != figures_.end())
        row.hand_over_us = median(found->second);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  [[nodiscard]] LabOutcome start(const Contender& contender) const {
    const std::vector<std::string> words{"--calls", joined(calls_), "--seconds",
                                         fmt::format("{:.6f}", options_.seconds)};
    if (!contender.library.empty()) {
      return lab_.run({.program = program,
                       .library = contender.library,
                       .ranks = ranks_,
                       .arguments = words,
                       .environment = contender.environment});
    }
    std::vector<std::string> native{"/usr/bin/env"};
    for (const auto& [name, value] : contender.environment) native.push_back(fmt::format("{}={}", name, value));
    const std::vector<std::string> job{lab_.folder() + "/farsum",       "run",      "-n", std::to_string(ranks_),
                                       lab_.folder() + "/bench-reduce", native_word};
    native.insert(native.end(), job.begin(), job.end());
    native.insert(native.end(), words.begin(), words.end());
    return lab_.run_words(native);
  }

  void keep(const Contender& contender, const LabOutcome& outcome, MeasuredReductions& measured) {
    std::string last;
    for (const Json& record : outcome.records) {
      if (record.contains("begin")) last = record.at("begin");
      if (record.contains("call")) figures_[{contender.name, record.at("call")}].push_back(record.at("us"));
    }
    if (outcome.ending == Ending::good) return;
    failed_.insert(contender.name);
    measured.failures[contender.name] = fmt::format("{} ranks, at {}: {}", ranks_, last, outcome.reason);
    if (contender.library.empty()) measured.is_wrong = true;
  }

  void keep_hand_over() {
    const LabOutcome outcome = lab_.run_words(
        {lab_.folder() + "/bench-reduce", bare_word, "--seconds", fmt::format("{:.6f}", options_.seconds)});
    for (const Json& record : outcome.records)
      figures_[{hand_over_name, hand_over_name}].push_back(record.at("hand_over_us"));
  }

  const MeasureOptions& options_;
  const Lab& lab_;
  const int ranks_;
  const std::vector<std::string> calls_;
  std::map<std::pair<std::string, std::string>, std::vector<double>> figures_;  // by who and what
  std::set<std::string> failed_;
};

std::optional<std::pair<std::string, double>> best_peer(const MeasuredRow& row) {
  const auto best = std::ranges::min_element(row.peers_us, {}, [](const auto& one) { return one.second; });
  if (best == row.peers_us.end()) return std::nullopt;
  return *best;
}

// Of the best peer's time.
double aim_of(const MeasuredRow& row) {
  const int usable = usable_processors();
  if (row.ranks == 2 && row.call.bytes == sizeof(double)) return 0.8;
  return row.ranks >= 16 && row.ranks <= usable ? 0.8 : 1.2;
}

Json json_of(const MeasuredRow& row) {
  Json object{{"bench", "reduce"}, {"case", fmt::format("{}, {} ranks", row.call.name(), row.ranks)}};
  const auto best = best_peer(row);
  Json ratio;
  if (best && row.ours_us) ratio = *row.ours_us / best->second;
  object["ours"] = row.ours_us ? Json(*row.ours_us) : Json();
  object["limit"] = best ? Json(best->second) : Json();
  object["ratio"] = ratio;
  object["better"] = "lower";
  object["aim"] = aim_of(row);
  object["met"] = ratio.is_number() ? Json(ratio.get<double>() <= aim_of(row)) : Json();
  object["unit"] = "us";
  object["peer"] = best ? Json(best->first) : Json();
  object["ranks"] = row.ranks;
  object["bytes"] = row.call.bytes;
  Json peers = Json::object();
  for (const auto& [name, us] : row.peers_us) peers[name] = us;
  object["peers"] = std::move(peers);
  return object;
}

// What the order of ranks costs; nothing where it was not measured, or nothing is folded.
std::optional<Json> by_ranks_of(const MeasuredRow& row) {
  if (!row.ours_us || !row.by_ranks_us || row.call.kind > collectives::Kind::reduce_scatter) return std::nullopt;
  const double ratio = *row.by_ranks_us / *row.ours_us;
  return Json{{"bench", "reduce"},
              {"case", fmt::format("{}, {} ranks, order of ranks", row.call.name(), row.ranks)},
              {"ours", *row.by_ranks_us},
              {"limit", *row.ours_us},
              {"ratio", ratio},
              {"better", "lower"},
              {"aim", most_by_ranks},
              {"met", ratio <= most_by_ranks},
              {"unit", "us"},
              {"peer", "the usual order"}};
}

// How the least allreduce of two ranks compares with what it cannot do without.
std::optional<Json> hand_overs_of(const MeasuredRow& row) {
  const bool is_least = row.ranks == 2 && row.call.name() == "allreduce/8";
  if (!is_least || !row.ours_us || !row.hand_over_us) return std::nullopt;
  const double ratio = *row.ours_us / *row.hand_over_us;
  return Json{{"bench", "reduce"},      {"case", "allreduce/8, 2 ranks, beside a hand-over of a line"},
              {"ours", *row.ours_us},   {"limit", *row.hand_over_us},
              {"ratio", ratio},         {"better", "lower"},
              {"aim", most_hand_overs}, {"met", ratio <= most_hand_overs},
              {"unit", "us"},           {"peer", "bare processes"}};
}

// Over the rows above the least vectors on 2 ranks, whose aim is the best peer in the mean.
std::optional<Json> mean_of(const std::vector<MeasuredRow>& rows) {
  double logs = 0;
  int count = 0;
  for (const MeasuredRow& row : rows) {
    const auto best = best_peer(row);
    if (row.ranks != 2 || row.call.bytes <= sizeof(double) || !best || !row.ours_us) continue;
    logs += std::log(*row.ours_us / best->second);
    ++count;
  }
  if (count == 0) return std::nullopt;
  const double mean = std::exp(logs / count);
  return Json{{"bench", "reduce"}, {"case", "64 B and more, 2 ranks, geometric mean"},
              {"ours", mean},      {"limit", 1.0},
              {"ratio", mean},     {"better", "lower"},
              {"aim", 1.0},        {"met", mean <= 1.0},
              {"unit", "ratio"},   {"peer", "the best of each row"},
              {"rows", count}};
}

std::vector<Json> objects_of(const MeasuredReductions& measured) {
  std::vector<Json> objects;
  for (const MeasuredRow& row : measured.rows) {
    objects.push_back(json_of(row));
    if (const auto by_ranks = by_ranks_of(row)) objects.push_back(*by_ranks);
    if (const auto hand_overs = hand_overs_of(row)) objects.push_back(*hand_overs);
  }
  if (const auto mean = mean_of(measured.rows)) objects.push_back(*mean);
  return objects;
}

std::string number_text(const Json& value) {
  return value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-";
}

std::string met_text(const Json& met) { return !met.is_boolean() ? "" : met.get<bool>() ? "met" : "MISSED"; }

}  // namespace

std::string why_not(const MeasureOptions& options, const Lab& lab) {
  const std::set<std::string> here = lab.libraries_for(program);
  for (const std::string& name : options.libraries) {
    if (!here.contains(name))
      return fmt::format("lab-reduce cannot run under {} here; there are: {}", name, fmt::join(here, ", "));
  }
  if (rows_wanted(options).empty()) {
    std::vector<std::string> names;
    std::ranges::transform(collectives::all_calls(), std::back_inserter(names),
                           [](const collectives::Call& call) { return call.name(); });
    return fmt::format("no call is called so; there are: {}", fmt::join(names, ", "));
  }
  return {};
}

MeasuredReductions measure(const MeasureOptions& options, const Lab& lab) {
  MeasuredReductions measured;
  const std::vector<Contender> contenders = contenders_of(options, lab);
  const std::vector<int> counts = options.ranks.empty() ? std::vector{2, 4, 8} : options.ranks;
  for (const int ranks : counts) {
    Turns turns(options, lab, ranks);
    turns.run(contenders, measured);
    std::ranges::move(turns.rows(), std::back_inserter(measured.rows));
  }
  return measured;
}

std::string lines_of(const MeasuredReductions& measured) {
  std::string lines;
  for (const Json& object : objects_of(measured)) lines += object.dump() + "\n";
  return lines;
}

std::string table_of(const MeasuredReductions& measured) {
  std::string table = fmt::format("{:<52} {:>10} {:>10} {:>8} {:>6} {:<7} {}\n", "case", "ours, us", "best, us",
                                  "ratio", "aim", "", "best");
  for (const Json& row : objects_of(measured)) {
    table += fmt::format("{:<52} {:>10} {:>10} {:>8} {:>6} {:<7} {}\n", row.at("case").get<std::string>(),
                         number_text(row.at("ours")), number_text(row.at("limit")), number_text(row.at("ratio")),
                         number_text(row.at("aim")), met_text(row.at("met")),
                         row.at("peer").is_string() ? row.at("peer").get<std::string>() : "");
  }
  for (const auto& [who, why] : measured.failures) table += fmt::format("{}: {}\n", who, why);
  return table;
}

}  // namespace bench
