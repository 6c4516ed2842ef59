// Measures the points of a plan: all contenders in turn, pair after pair, and then a line for each point and library.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report.hpp"
#include "runner.hpp"
#include "session.hpp"

namespace bench {

// How far a run of all plans has come.
struct Progress {
  int starts = 0;
  int all_starts = 0;
};

class PlanRun {
 public:
  PlanRun(const Options& options, const Machine& machine, const Runner& runner, const Plan& plan);

  // False where it was interrupted; what was measured until then can be told.
  bool measure(Report& report, Progress& progress);
  void tell(Report& report) const;
  // How often it starts ranks, where none end badly.
  [[nodiscard]] int starts() const { return options_.pairs * static_cast<int>(contenders_.size()); }

 private:
  using Key = std::pair<Contender, std::string>;  // who, and the name of a point

  bool measure_contender(const Contender& contender, Report& report);
  void keep(const Contender& contender, const RunResult& result, std::vector<std::string>& left);
  void blame(const Contender& contender, const RunResult& result, std::vector<std::string>& left, Report& report);
  void tell_point(const ranks::Point& point, const std::string& library, Report& report) const;
  [[nodiscard]] std::vector<std::string> points_left(const Contender& contender) const;
  [[nodiscard]] std::optional<Spread> spread(const Contender& contender, const ranks::Point& point) const;
  [[nodiscard]] std::optional<Peer> best_alone(const ranks::Point& point) const;
  [[nodiscard]] std::string note_of(const Contender& ours, const ranks::Point& point) const;
  [[nodiscard]] std::string version_of(const std::string& library) const;

  const Options& options_;
  const Machine& machine_;
  const Runner& runner_;
  const Plan& plan_;
  std::vector<Contender> contenders_;
  std::map<Key, std::vector<Json>> records_;
  std::map<Key, std::string> reasons_;  // why it is not tried again
};

}  // namespace bench
