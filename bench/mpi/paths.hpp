// Which way an operation went, as the front's own statistics tell it: asked in a run of its own, so that counting costs
// nothing where time is taken.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab.hpp"

namespace bench {

class Paths {
 public:
  // Runs these cases of lab-bench with Farsum and keeps what their window's operations took.
  void ask(const Lab& lab, const std::string& library, const std::string& memory, const std::vector<std::string>& cases);

  // "direct", "attach", ...; several joined by +; empty where it is not known or the case moves nothing.
  [[nodiscard]] std::string of(const std::string& library, const std::string& memory, const std::string& name) const;

 private:
  std::map<std::string, std::set<std::string>> paths_;  // by library, memory and operation
};

// The operation that a case of lab-bench consists of, as the statistics name it; empty for calls that move nothing.
[[nodiscard]] std::string operation_of(const std::string& case_name);

}  // namespace bench
