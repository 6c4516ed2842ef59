#include "report.hpp"

#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

namespace bench {
namespace {

// Up to four significant digits, without an exponent.
std::string short_number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// Ratios are shown with two digits; the aim is judged by the whole number.
bool is_met(const Aim& aim, double ratio) {
  return aim.better == Better::lower ? ratio <= *aim.ratio : ratio >= *aim.ratio;
}

std::string counters_text(const nlohmann::ordered_json& more) {
  if (!more.contains("messages")) return {};
  const auto value = [&](const char* name) { return more.at(name).get<double>(); };
  return fmt::format("{:.3g} msg, {:.4g} B, {:.2g} lock, {:.2g} wake, {:.2g} ctx", value("messages"), value("bytes"),
                     value("locks"), value("wakeups"), value("context_switches"));
}

}  // namespace

Report::Report(bool speaks, bool json, const std::string& points) : speaks_(speaks), json_(json) {
  if (!speaks || points.empty()) return;
  points_.open(points, std::ios::trunc);
  if (!points_) throw std::runtime_error(fmt::format("cannot write {}", points));
}

void Report::print_header() {
  if (header_printed_) return;
  header_printed_ = true;
  fmt::print("{:<58} {:>9} {:>9} {:<8} {:>6} {:>13} {:>8} {:<6} {}\n", "case", "ours", "limit", "unit", "ratio",
             "quartiles", "aim", "", "per operation");
}

void Report::row(const Row& row) {
  const std::vector<double> ratios = row.pairs.ratios();
  const double ratio = median(ratios);
  const bool met = row.aim.ratio.has_value() && is_met(row.aim, ratio);
  aims_ += row.aim.ratio.has_value() ? 1 : 0;
  met_ += met ? 1 : 0;
  if (!speaks_) return;

  const double ours = median(row.pairs.ours);
  const double limit = median(row.pairs.limit);
  const bool lower = row.aim.better == Better::lower;
  if (json_) {
    nlohmann::ordered_json line = {{"bench", row.bench}, {"case", row.name}, {"ours", ours},
                                   {"limit", limit},     {"ratio", ratio},   {"better", lower ? "lower" : "higher"}};
    line["aim"] = row.aim.ratio.has_value() ? nlohmann::ordered_json(*row.aim.ratio) : nlohmann::ordered_json();
    line["met"] = row.aim.ratio.has_value() ? nlohmann::ordered_json(met) : nlohmann::ordered_json();
    line["unit"] = row.unit;
    line["pairs"] = ratios.size();
    line["ratio_low"] = quantile(ratios, 0.25);
    line["ratio_high"] = quantile(ratios, 0.75);
    line.update(row.more);
    fmt::print("{}\n", line.dump());
  } else {
    print_header();
    const std::string aim =
        row.aim.ratio.has_value() ? fmt::format("{} {:.4g}", lower ? "<=" : ">=", *row.aim.ratio) : "";
    const char* verdict = !row.aim.ratio.has_value() ? "" : met ? "met" : "MISSED";
    fmt::print("{:<58} {:>9} {:>9} {:<8} {:>6.2f} {:>13} {:>8} {:<6} {}\n", row.bench + ": " + row.name,
               short_number(ours), short_number(limit), row.unit, ratio,
               fmt::format("{:.2f}..{:.2f}", quantile(ratios, 0.25), quantile(ratios, 0.75)), aim, verdict,
               counters_text(row.more));
  }
  std::fflush(stdout);
}

void Report::point(const nlohmann::ordered_json& point) {
  if (points_.is_open()) points_ << point.dump() << std::endl;
  if (!speaks_ || !json_) return;
  fmt::print("{}\n", point.dump());
  std::fflush(stdout);
}

void Report::progress(const std::string& line) const {
  if (speaks_) fmt::print(stderr, "bench-engine: {}\n", line);
}

void Report::summary() const {
  if (speaks_ && !json_ && aims_ != 0) fmt::print("{} of {} aims met\n", met_, aims_);
}

}  // namespace bench
