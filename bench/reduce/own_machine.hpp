// The model of reductions as this machine has measured it: serial reductions beside the line that is fitted to them
// (figure 2 of paper 5), and trees beside what that predicts of them (figure 10). Measures nothing itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "predictions.hpp"
#include "runtime/reduction_models.hpp"
#include "runtime/tree_times.hpp"

namespace bench {

// A serial reduction over so many nodes.
struct SerialPoint {
  std::uint64_t nodes;
  double fitted_us;
  double measured_us;
};

struct OwnSerialRow {
  cost::ReducedVector vector;
  std::vector<SerialPoint> points;
};

struct DegreePoint {
  std::uint64_t degree;
  double predicted_us;
  double measured_us;
};

struct OwnDegreeRow {
  cost::ReducedVector vector;
  std::vector<DegreePoint> points;  // one at least
  std::size_t predicted_best = 0;   // which point
  std::size_t measured_best = 0;

  // How many times as long as by the best degree it takes by the one that is predicted to be.
  double regret() const { return points[predicted_best].measured_us / points[measured_best].measured_us; }
};

struct OwnMachine {
  farsum::ReductionParameters parameters;
  farsum::MeasuredTrees trees;
  std::vector<OwnSerialRow> serial;   // of the vectors of figure 2; none where nothing is measured
  std::vector<OwnDegreeRow> degrees;  // none where no tree, or nothing that predicts it, is measured
};

// By the files where `farsum info --model` has them.
OwnMachine read_own_machine();

}  // namespace bench
