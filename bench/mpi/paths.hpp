// Which way an operation went, as the front's own statistics tell it: asked in a run of its own, so that counting costs
// nothing where time is taken.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/lab.hpp"

namespace bench {

class Paths {
 public:
  // Runs these cases of lab-bench with Farsum and keeps what their window's operations took. The statistics know
  // operations, not cases: those of one operation have a run each.
  void ask(const Lab& lab, const std::string& library, const std::string& memory,
           const std::vector<std::string>& cases);

  // "direct", "attach", ...; several joined by +; empty where it is not known or the case moves nothing.
  [[nodiscard]] std::string of(const std::string& library, const std::string& memory, const std::string& name) const;

 private:
  void ask_batch(const Lab& lab, const std::string& library, const std::string& memory,
                 const std::map<std::string, std::string>& case_of_operation);

  std::map<std::string, std::set<std::string>> paths_;  // by library, memory and case
};

}  // namespace bench
