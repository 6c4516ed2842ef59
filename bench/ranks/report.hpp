// One line for each point and library: JSON with fixed names, or a table for people.
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "ranks/cases/rows.hpp"

namespace bench {

// The figures of one contender's pairs.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

[[nodiscard]] std::optional<Spread> spread_of(const std::vector<double>& figures);

struct Peer {
  std::string library;
  double figure = 0;
};

struct Line {
  ranks::Point point;
  int ranks = 2;
  std::string library;
  std::string version;
  std::optional<Spread> ours = std::nullopt;   // with Farsum, or Farsum's own
  std::optional<Spread> alone = std::nullopt;  // the same library without
  std::optional<Spread> limit = std::nullopt;  // bare processes
  std::optional<Peer> peer = std::nullopt;     // the best library alone
  Json last = Json::object();                  // the last record of ours
  std::size_t pairs = 0;
  std::string note = {};  // why something is missing

  [[nodiscard]] std::string name() const;
  // In the row's unit; at 2 ranks the best library alone.
  [[nodiscard]] std::optional<double> aim() const;
  [[nodiscard]] std::optional<bool> is_met() const;
};

struct Machine {
  std::string processor;
  int usable = 1;
  std::string system;
  std::vector<std::pair<std::string, std::string>> libraries;  // name and version
};

[[nodiscard]] Machine this_machine();

class Report {
 public:
  // `points` (may be empty) gets the JSON lines besides, for a figure.
  Report(bool json, const std::string& points);

  void header(const Machine& machine);
  void line(const Line& line);
  // To the error stream, so that a redirected table or JSON stays clean.
  static void progress(const std::string& text);
  // A run with Farsum that ended badly: the benchmark fails at its end.
  void failure(const std::string& text);
  void summary() const;
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  void write(const Json& object);
  static void print_text(const Line& line);

  bool json_;
  std::ofstream points_;
  bool has_failed_ = false;
  int aims_ = 0;
  int met_ = 0;
};

}  // namespace bench
