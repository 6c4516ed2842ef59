// Reductions by trees of several degrees as they were measured on this machine: in a file for its kind beside that of
// reduction_models.hpp, with the same rules. They are shown beside what the model predicts, and are no part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cost/reduction_model.hpp"

namespace farsum {

struct TreeTime {
  std::uint64_t degree = 2;
  double us = 0;
};

// One vector, by trees of several degrees.
struct TreeCurve {
  cost::ReducedVector vector;
  std::vector<TreeTime> times;
};

struct MeasuredTrees {
  std::uint64_t nodes = 2;
  std::uint64_t processors = 1;  // that these shared
  std::vector<TreeCurve> curves;
  std::string when;
  std::string source;     // the file
  std::string complaint;  // why a file that is there is not used; empty where all is well

  bool are_there() const { return !curves.empty(); }
};

std::string tree_file(const std::string& folder);
// No curves for an empty folder, and for a file that is missing, damaged or of another kind of machine.
MeasuredTrees read_measured_trees(const std::string& folder);
// What it says of when, where from and why not is not read.
Status write_measured_trees(const std::string& folder, const MeasuredTrees& trees, const std::string& when);

}  // namespace farsum
