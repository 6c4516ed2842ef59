#include "report.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace bench {
namespace {

// Up to four significant digits, without an exponent.
std::string short_number(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return *value >= 1000 ? fmt::format("{:.0f}", *value) : fmt::format("{:.4g}", *value);
}

// Ratios of a thousandth need more than two digits.
std::string ratio_text(double ratio) {
  return ratio < 0.1 ? fmt::format("{:.1e}", ratio) : fmt::format("{:.2f}", ratio);
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json();
}

std::string note_of(const Line& line) {
  std::string note = line.note;
  if (line.ratio_without.has_value()) {
    const std::string limit =
        line.limit_without.has_value() ? fmt::format(" of {}", short_number(line.limit_without)) : std::string();
    note =
        fmt::format("without Farsum {}{}{}{}", ratio_text(*line.ratio_without), limit, note.empty() ? "" : "; ", note);
  }
  return note.empty() ? note : "  # " + note;
}

}  // namespace

Figure figure_of(const Pairs& pairs) {
  Figure figure;
  if (!pairs.ours.empty()) figure.ours = median(pairs.ours);
  if (!pairs.limit.empty()) figure.limit = median(pairs.limit);
  if (pairs.ours.empty() || pairs.ours.size() != pairs.limit.size()) return figure;
  const std::vector<double> ratios = pairs.ratios();
  figure.ratio = median(ratios);
  figure.ratio_low = quantile(ratios, 0.25);
  figure.ratio_high = quantile(ratios, 0.75);
  figure.pairs = ratios.size();
  return figure;
}

void Report::print_header() {
  if (header_printed_) return;
  header_printed_ = true;
  fmt::print("{:<58} {:<9} {:>10} {:>10} {:<4} {:>8} {:>17} {:>8} {:<6} {:<9} {}\n", "case", "library", "ours", "limit",
             "unit", "ratio", "spread", "aim", "", "path", "limit of");
}

void Report::print_json(const Line& line, std::optional<bool> met) const {
  const Figure& figure = line.figure;
  Json object = {{"bench", "mpi"}, {"row", line.row}, {"case", line.name}, {"library", line.library}};
  object["ours"] = or_null(figure.ours);
  object["limit"] = or_null(figure.limit);
  object["ratio"] = or_null(figure.ratio);
  object["better"] = "lower";
  object["aim"] = or_null(line.aim);
  object["met"] = or_null(met);
  object["unit"] = line.unit;
  object["peer"] = line.peer.empty() ? Json() : Json(line.peer);
  object["path"] = line.path.empty() ? Json() : Json(line.path);
  if (figure.ratio.has_value()) {
    object["pairs"] = figure.pairs;
    object["ratio_low"] = figure.ratio_low;
    object["ratio_high"] = figure.ratio_high;
  }
  if (line.ratio_without.has_value()) object["ratio_without"] = *line.ratio_without;
  if (line.limit_without.has_value()) object["limit_without"] = *line.limit_without;
  if (!line.note.empty()) object["note"] = line.note;
  fmt::print("{}\n", object.dump());
}

void Report::print_text(const Line& line, std::optional<bool> met) {
  print_header();
  const Figure& figure = line.figure;
  const std::string spread =
      figure.ratio.has_value() ? ratio_text(figure.ratio_low) + ".." + ratio_text(figure.ratio_high) : "";
  fmt::print("{:<58} {:<9} {:>10} {:>10} {:<4} {:>8} {:>17} {:>8} {:<6} {:<9} {}{}\n", line.row + ": " + line.name,
             line.library, short_number(figure.ours), short_number(figure.limit), line.unit,
             figure.ratio.has_value() ? ratio_text(*figure.ratio) : "-", spread,
             line.aim.has_value() ? fmt::format("<= {:.4g}", *line.aim) : "",
             !met.has_value() ? ""
             : *met           ? "met"
                              : "MISSED",
             line.path, line.peer, note_of(line));
}

// Ratios are shown with two digits; the aim is judged by the whole number.
void Report::line(const Line& line) {
  std::optional<bool> met = line.met;
  if (!met.has_value() && line.figure.ratio.has_value() && line.aim.has_value()) met = *line.figure.ratio <= *line.aim;
  aims_ += met.has_value() ? 1 : 0;
  met_ += met.value_or(false) ? 1 : 0;
  if (json_) {
    print_json(line, met);
  } else {
    print_text(line, met);
  }
  std::fflush(stdout);
}

void Report::progress(const std::string& text) const { fmt::print(stderr, "bench-mpi: {}\n", text); }

void Report::failure(const std::string& text) {
  failed_ = true;
  fmt::print(stderr, "bench-mpi: FAILED: {}\n", text);
}

void Report::summary() const {
  if (!json_ && aims_ != 0) fmt::print("{} of {} aims met\n", met_, aims_);
}

}  // namespace bench
