// Starts one contender's ranks for some points and hands back the records that came.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "session.hpp"

namespace bench {

// What came of a start: a record for each point that was measured, and how it ended.
struct RunResult {
  std::map<std::string, Json> records;  // by name of the point
  Ending ending = Ending::good;
  std::string culprit;  // the point at which it ended badly; empty where that was before the first
  std::string reason;
  std::string errors;
};

class Runner {
 public:
  Runner(const Lab& lab, double seconds) : lab_(lab), seconds_(seconds) {}

  [[nodiscard]] RunResult run(const Contender& contender, int ranks, const std::vector<std::string>& points) const;
  // The library's name and version; empty where it cannot start a rank.
  [[nodiscard]] std::string version_of(const std::string& library) const;

 private:
  [[nodiscard]] LabOutcome start(const Contender& contender, int ranks, const std::vector<std::string>& words) const;

  const Lab& lab_;
  double seconds_;
};

}  // namespace bench
