// One line for each row: JSON with fixed names, or a table for people. Only rank 0 prints.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.hpp"

namespace bench {

enum class Better : std::uint8_t { lower, higher };

// `ratio` is ours over limit; without one the row has no aim and is shown for what it is.
struct Aim {
  Better better = Better::lower;
  std::optional<double> ratio;
};

struct Row {
  std::string bench;
  std::string name;
  std::string unit;
  Aim aim;
  Pairs pairs = {};
  nlohmann::ordered_json more = nlohmann::ordered_json::object();  // counters per operation, notes
};

class Report {
 public:
  // `points` (may be empty) is a file for the points of plots, besides what is printed.
  Report(bool speaks, bool json, const std::string& points);

  void row(const Row& row);
  // A line that is no comparison, such as a point of a plot.
  void point(const nlohmann::ordered_json& point);
  // To the error stream, so that a redirected table or JSON stays clean.
  void progress(const std::string& line) const;
  // How many rows met their aims, of how many that have one.
  void summary() const;

 private:
  void print_header();

  bool speaks_;
  bool json_;
  std::ofstream points_;
  bool header_printed_ = false;
  int met_ = 0;
  int aims_ = 0;
};

}  // namespace bench
