// One line per case and library: JSON with fixed names, or a table for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/lab.hpp"
#include "engine/harness.hpp"

namespace bench {

// Ours beside a limit. Without a limit there is no ratio: nobody else could do it.
struct Figure {
  std::optional<double> ours = std::nullopt;
  std::optional<double> limit = std::nullopt;
  std::optional<double> ratio = std::nullopt;  // the median of the pairs' ratios
  double ratio_low = 0;
  double ratio_high = 0;
  std::size_t pairs = 0;
};

[[nodiscard]] Figure figure_of(const Pairs& pairs);

struct Line {
  std::string row;   // of the table of aims
  std::string name;  // of the case
  std::string library;
  std::string peer;       // what the limit is of
  std::string path = {};  // empty where it is not known or says nothing
  std::string unit;
  Figure figure = {};
  std::optional<double> aim = std::nullopt;
  std::optional<bool> met = std::nullopt;              // where no ratio decides it
  std::optional<double> ratio_without = std::nullopt;  // the same ratio of this library alone
  std::optional<double> limit_without = std::nullopt;  // and its limit, where Farsum might have changed that
  std::string note = {};                               // why something is missing
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void line(const Line& line);
  // To the error stream, so that a redirected table or JSON stays clean.
  void progress(const std::string& text) const;
  // A run with Farsum that ended badly: the benchmark fails at its end.
  void failure(const std::string& text);
  void summary() const;
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void print_header();
  void print_json(const Line& line, std::optional<bool> met) const;
  void print_text(const Line& line, std::optional<bool> met);

  bool json_;
  bool header_printed_ = false;
  bool failed_ = false;
  int met_ = 0;
  int aims_ = 0;
};

}  // namespace bench
