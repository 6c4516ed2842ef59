// Serial reductions as they were measured on this machine, and the model that is fitted to them: in a file for its kind
// beside those of link_models.hpp, with the same rules; else the model of paper 5's cards. And by what the trees of a
// job are taken, which that decides.
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "cost/reduction_model.hpp"
#include "cost/serial_fit.hpp"
#include "cost/tree_rule.hpp"

namespace farsum {

// All that a file keeps: the model is fitted anew whenever it is read. Times of trees have no place here.
struct SerialReductions {
  std::vector<cost::SerialCurve> curves;
  cost::FitConditions conditions;
};

struct ReductionParameters {
  cost::ReductionModel model;
  // Where they were measured; else empty.
  SerialReductions measured;
  cost::FittedModel fitted;
  std::string when;
  std::string source;     // the file, or "built in"
  std::string complaint;  // why a file that is there is not used; empty where all is well

  bool is_measured() const { return !measured.curves.empty(); }
};

std::string reduction_file(const std::string& folder);
// The built-in ones for an empty folder, and for a file that is missing, damaged, of another kind of machine, or of
// times that make no model.
ReductionParameters read_reduction_parameters(const std::string& folder);
// What rank 0 of a job tells all ranks: a degree that its settings force, or else, unless they say that no model is to
// choose, the table of parameters that were measured on its machine, if they were.
cost::TreeRule read_tree_rule(const Settings& settings, const Environment& environment);
Status write_serial_reductions(const std::string& folder, const SerialReductions& measured, const std::string& when);

}  // namespace farsum
