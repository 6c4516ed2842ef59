// What the parts of this benchmark share: which libraries, how many pairs, which cases, and where lines go.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fnmatch.h>

#include "common/lab.hpp"
#include "report.hpp"

namespace bench {

// The aim of what may cost no more with Farsum, with room for noise.
inline constexpr double never_slower = 1.03;

struct Options {
  std::vector<std::string> patterns = {"*"};
  std::vector<std::string> libraries;
  std::vector<std::string> beside;  // where busy loops are: nothing, outside, inside; empty: the usual rows
  std::vector<int> ranks = {2, 4};  // beside these
  int pairs = 0;                    // 0: as many as the row says
  bool quick = false;
};

struct Session {
  const Options& options;
  const Lab& lab;
  Report& report;

  // A pattern may mean a row, a case, or ROW/CASE.
  [[nodiscard]] bool wants(const std::string& row, const std::string& name) const {
    const std::string whole = row + "/" + name;
    return std::any_of(options.patterns.begin(), options.patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), row.c_str(), 0) == 0 || fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
             fnmatch(pattern.c_str(), whole.c_str(), 0) == 0;
    });
  }
  [[nodiscard]] int pairs(int usual) const { return options.pairs != 0 ? options.pairs : options.quick ? 1 : usual; }
};

void run_calls(const Session& session);
void run_counter(const Session& session);
void run_automaton(const Session& session);
void run_beside(const Session& session);

}  // namespace bench
