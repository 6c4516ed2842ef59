#include "plan_run.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bench {

PlanRun::PlanRun(const Options& options, const Machine& machine, const Runner& runner, const Plan& plan)
    : options_(options), machine_(machine), runner_(runner), plan_(plan) {
  using Kind = Contender::Kind;
  contenders_.push_back({.kind = Kind::bare});
  for (const std::string& library : options.libraries) {
    if (library == native_library) {
      contenders_.push_back({.kind = Kind::native, .library = library});
      continue;
    }
    contenders_.push_back({.kind = Kind::alone, .library = library});
    contenders_.push_back({.kind = Kind::with_farsum, .library = library});
  }
}

bool PlanRun::measure(Report& report, Progress& progress) {
  for (int pair = 1; pair <= options_.pairs; ++pair) {
    for (const Contender& contender : contenders_) {
      Report::progress(fmt::format("{} of {}: {} ({} rows), {} ranks, pair {} of {}, {}", ++progress.starts,
                                   progress.all_starts, plan_.group, plan_.points.size(), plan_.ranks, pair,
                                   options_.pairs, contender.name()));
      if (!measure_contender(contender, report)) return false;
    }
  }
  return true;
}

std::vector<std::string> PlanRun::points_left(const Contender& contender) const {
  std::vector<std::string> names;
  for (const ranks::Point& point : plan_.points) {
    if (!reasons_.contains({contender, point.name()})) names.push_back(point.name());
  }
  return names;
}

// A point at which the ranks end badly is left out, and the others are tried once more.
bool PlanRun::measure_contender(const Contender& contender, Report& report) {
  std::vector<std::string> left = points_left(contender);
  while (!left.empty()) {
    const RunResult result = runner_.run(contender, plan_.ranks, left);
    keep(contender, result, left);
    if (result.ending == Ending::stopped) return false;
    if (result.ending == Ending::good) break;
    blame(contender, result, left, report);
  }
  return true;
}

void PlanRun::keep(const Contender& contender, const RunResult& result, std::vector<std::string>& left) {
  for (const auto& [name, record] : result.records) {
    records_[{contender, name}].push_back(record);
    std::erase(left, name);
  }
}

void PlanRun::blame(const Contender& contender, const RunResult& result, std::vector<std::string>& left,
                    Report& report) {
  // What ends badly with everything measured, or before anything was begun, may do so at any of its points.
  const bool is_known = std::ranges::find(left, result.culprit) != left.end();
  const std::vector<std::string> culprits = is_known       ? std::vector{result.culprit}
                                            : left.empty() ? std::vector{result.culprit}
                                                           : left;
  for (const std::string& culprit : culprits) {
    reasons_[{contender, culprit}] = result.reason;
    std::erase(left, culprit);
  }
  const std::string what =
      fmt::format("{}, {} on {} ranks: {}", contender.name(), fmt::join(culprits, ", "), plan_.ranks, result.reason);
  if (contender.is_farsum())
    report.failure(fmt::format("{}\n{}", what, result.errors));
  else
    Report::progress(what);
}

std::optional<Spread> PlanRun::spread(const Contender& contender, const ranks::Point& point) const {
  const auto found = records_.find({contender, point.name()});
  if (found == records_.end()) return std::nullopt;
  std::vector<double> figures;
  for (const Json& record : found->second) figures.push_back(record.at("figure").get<double>());
  return spread_of(figures);
}

std::optional<Peer> PlanRun::best_alone(const ranks::Point& point) const {
  std::optional<Peer> best;
  for (const Contender& contender : contenders_) {
    if (contender.kind != Contender::Kind::alone) continue;
    const auto figures = spread(contender, point);
    if (!figures) continue;
    const bool is_better =
        !best || (point.row->is_rate() ? figures->median > best->figure : figures->median < best->figure);
    if (is_better) best = Peer{.library = contender.library, .figure = figures->median};
  }
  return best;
}

std::string PlanRun::note_of(const Contender& ours, const ranks::Point& point) const {
  std::string note;
  const Contender alone{.kind = Contender::Kind::alone, .library = ours.library};
  for (const Contender& contender : {alone, ours, Contender{}}) {
    const auto reason = reasons_.find({contender, point.name()});
    if (reason == reasons_.end()) continue;
    note += fmt::format("{}{}: {}", note.empty() ? "" : "; ", contender.name(), reason->second);
  }
  return note;
}

std::string PlanRun::version_of(const std::string& library) const {
  const auto& known = machine_.libraries;
  const auto found = std::ranges::find_if(known, [&](const auto& one) { return one.first == library; });
  return found == known.end() ? std::string() : found->second;
}

void PlanRun::tell_point(const ranks::Point& point, const std::string& library, Report& report) const {
  const bool is_native = library == native_library;
  const Contender ours{.kind = is_native ? Contender::Kind::native : Contender::Kind::with_farsum, .library = library};
  Line line{.point = point, .ranks = plan_.ranks, .library = library, .version = version_of(library)};
  line.ours = spread(ours, point);
  line.alone = spread({.kind = Contender::Kind::alone, .library = library}, point);
  line.limit = spread({}, point);
  line.peer = best_alone(point);
  line.note = note_of(ours, point);
  if (const auto found = records_.find({ours, point.name()}); found != records_.end()) {
    line.last = found->second.back();
    line.pairs = found->second.size();
  }
  if (line.ours || line.alone || !line.note.empty()) report.line(line);
}

void PlanRun::tell(Report& report) const {
  for (const ranks::Point& point : plan_.points) {
    for (const std::string& library : options_.libraries) tell_point(point, library, report);
  }
}

}  // namespace bench
