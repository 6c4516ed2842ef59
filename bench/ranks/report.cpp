#include "report.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

#include "common/usable_processors.hpp"
#include "engine/harness.hpp"

namespace bench {
namespace {

constexpr int ranks_of_first_aims = 2;
constexpr int ranks_of_row_aims = 16;

// Up to four significant digits, without an exponent.
std::string short_number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}
std::string median_text(const std::optional<Spread>& spread) { return spread ? short_number(spread->median) : "-"; }

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json();
}
Json median_or_null(const std::optional<Spread>& spread) { return spread ? Json(spread->median) : Json(); }

void add_spread(Json& object, const std::string& prefix, const std::optional<Spread>& spread) {
  object[prefix + "low"] = spread ? Json(spread->low) : Json();
  object[prefix + "high"] = spread ? Json(spread->high) : Json();
}

// A number beside the bare limit; null where one of the two is missing.
std::optional<double> beside_limit(const Line& line, const std::optional<double>& value) {
  if (!value || !line.limit || line.limit->median <= 0) return std::nullopt;
  return *value / line.limit->median;
}

std::optional<double> ratio_of(const Line& line) {
  return beside_limit(line, line.ours ? std::optional(line.ours->median) : std::nullopt);
}

std::string aim_source(const Line& line) {
  if (!line.aim()) return {};
  return line.ranks == ranks_of_first_aims ? line.peer->library + " alone" : "its row";
}

Json json_of(const Line& line) {
  const ranks::Point& point = line.point;
  Json object = {{"bench", "ranks"}, {"case", line.name()}};
  object["ours"] = median_or_null(line.ours);
  object["limit"] = median_or_null(line.limit);
  object["ratio"] = or_null(ratio_of(line));
  object["better"] = point.row->is_rate() ? "higher" : "lower";
  object["aim"] = or_null(beside_limit(line, line.aim()));
  object["met"] = or_null(line.is_met());
  object["unit"] = point.row->unit;
  object["peer"] = line.peer ? Json(line.peer->library) : Json();
  object["peer_figure"] = line.peer ? Json(line.peer->figure) : Json();
  object["aim_figure"] = or_null(line.aim());
  object["aim_of"] = line.aim() ? Json(aim_source(line)) : Json();
  object["row"] = point.row->name;
  object["ranks"] = line.ranks;
  object["threads"] = point.threads;
  object["memory"] = point.row->has_threads() ? ranks::allocated : point.variant;
  object["windows"] = point.variant == ranks::window_each ? "each" : "one";
  object["library"] = line.library;
  object["version"] = line.version;
  object["alone"] = median_or_null(line.alone);
  add_spread(object, "", line.ours);
  add_spread(object, "alone_", line.alone);
  add_spread(object, "limit_", line.limit);
  object["pairs"] = line.pairs;
  for (const char* key : {"repetitions", "seconds", "checked", "slowest_to_fastest"})
    object[key] = line.last.contains(key) ? line.last.at(key) : Json();
  if (!line.note.empty()) object["note"] = line.note;
  return object;
}

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

std::optional<Spread> spread_of(const std::vector<double>& figures) {
  if (figures.empty()) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(figures);
  return Spread{.median = median(figures), .low = low, .high = high};
}

std::string Line::name() const {
  const std::string variant = point.variant == ranks::one_window    ? "one window"
                              : point.variant == ranks::window_each ? "a window each"
                                                                    : point.variant;
  const std::string threads =
      point.row->has_threads() ? fmt::format(" of {} thread{}", point.threads, point.threads == 1 ? "" : "s") : "";
  return fmt::format("{}, {}, {} ranks{}", point.row->name, variant, ranks, threads);
}

std::optional<double> Line::aim() const {
  if (ranks == ranks_of_first_aims) return peer ? std::optional(peer->figure) : std::nullopt;
  return ranks == ranks_of_row_aims ? point.row->aim_at_16 : std::nullopt;
}

std::optional<bool> Line::is_met() const {
  if (!aim() || !ours) return std::nullopt;
  return point.row->is_rate() ? ours->median >= *aim() : ours->median <= *aim();
}

Machine this_machine() {
  utsname system{};
  uname(&system);
  return {.processor = processor_name(),
          .usable = usable_processors(),
          .system = fmt::format("{} {}", system.sysname, system.release),
          .libraries = {}};
}

Report::Report(bool json, const std::string& points) : json_(json) {
  if (points.empty()) return;
  points_.open(points, std::ios::trunc);
  if (!points_) throw std::runtime_error(fmt::format("cannot write {}", points));
}

void Report::write(const Json& object) {
  if (points_.is_open()) points_ << object.dump() << std::endl;
  if (!json_) return;
  fmt::print("{}\n", object.dump());
  std::fflush(stdout);
}

void Report::header(const Machine& machine) {
  Json versions = Json::object();
  for (const auto& [name, version] : machine.libraries) versions[name] = version;
  write({{"bench", "ranks"},
         {"processor", machine.processor},
         {"usable_processors", machine.usable},
         {"system", machine.system},
         {"libraries", versions}});
  if (json_) return;
  fmt::print("{}, {} usable; {}\n", machine.processor, machine.usable, machine.system);
  for (const auto& [name, version] : machine.libraries) fmt::print("{}: {}\n", name, version);
  fmt::print("\n{:<54} {:<9} {:>9} {:>9} {:>17} {:>9} {:<4} {:>7} {:>10} {:<6} {:>8}\n", "case", "library", "alone",
             "ours", "low..high", "limit", "unit", "ratio", "aim", "", "fairness");
  std::fflush(stdout);
}

void Report::print_text(const Line& line) {
  const auto met = line.is_met();
  const std::string spread =
      line.ours ? fmt::format("{}..{}", short_number(line.ours->low), short_number(line.ours->high)) : "";
  const auto ratio = ratio_of(line);
  const std::string aim =
      line.aim() ? fmt::format("{} {}", line.point.row->is_rate() ? ">=" : "<=", short_number(*line.aim())) : "";
  const std::string fairness = line.last.contains("slowest_to_fastest")
                                   ? fmt::format("{:.2f}", line.last.at("slowest_to_fastest").get<double>())
                                   : "";
  fmt::print("{:<54} {:<9} {:>9} {:>9} {:>17} {:>9} {:<4} {:>7} {:>10} {:<6} {:>8}{}\n", line.name(), line.library,
             median_text(line.alone), median_text(line.ours), spread, median_text(line.limit), line.point.row->unit,
             ratio ? fmt::format("{:.3g}", *ratio) : "-", aim,
             !met   ? ""
             : *met ? "met"
                    : "MISSED",
             fairness, line.note.empty() ? "" : "  # " + line.note);
  std::fflush(stdout);
}

void Report::line(const Line& line) {
  const auto met = line.is_met();
  aims_ += met ? 1 : 0;
  met_ += met.value_or(false) ? 1 : 0;
  write(json_of(line));
  if (!json_) print_text(line);
}

void Report::progress(const std::string& text) { fmt::print(stderr, "bench-ranks: {}\n", text); }

void Report::failure(const std::string& text) {
  has_failed_ = true;
  fmt::print(stderr, "bench-ranks: FAILED: {}\n", text);
}

void Report::summary() const {
  if (!json_ && aims_ != 0) fmt::print("{} of {} aims met\n", met_, aims_);
}

}  // namespace bench
