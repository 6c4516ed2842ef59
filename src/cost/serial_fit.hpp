// The parameters of the model of reductions from measured serial reductions, in which all send to one (paper 5,
// sections 4.1 and 5.1): pure arithmetic, no clock, no file. Times of trees have no way in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/reduction_model.hpp"

namespace farsum::cost {

struct SerialTime {
  std::uint64_t ranks = 2;
  double us = 0;
};

// The serial reductions of one vector over several numbers of ranks.
struct SerialCurve {
  ReducedVector vector;
  std::vector<SerialTime> times;
};

// The line of least squares through a curve: us = intercept + slope x, where x is the messages that the root takes,
// times the crowding of the processors where there are fewer of these than ranks.
struct SerialLine {
  double slope_us = 0;               // r + c
  double intercept_us = 0;           // C + L
  std::vector<double> residuals_us;  // measured less the line's, for each time of the curve
};
// Nothing where the curve has no two different x. There is at least one processor.
std::optional<SerialLine> fit_line(std::span<const SerialTime> times, std::uint64_t processors);

struct FittedModel {
  ReductionModel model;
  std::vector<SerialLine> lines;  // one for each curve
  // Measured less the model's, for each time of each curve: none where the model has not got the operator.
  std::vector<std::vector<double>> residuals_us;
};

// What else must be known: serial reductions tell L and C as a sum only.
struct FitConditions {
  double half_round_trip_us = 0;  // of a message as short as those of the curves: L + r
  std::uint64_t processors = 1;   // that the ranks of the curves shared
  std::uint64_t packet_bytes = 64;
};

// r is the slope of no_op, c the rest of an operator's slope, C the mean of its intercepts less L. An operator is in
// the model where all listed numbers of elements were measured. Nothing where a curve has no line, or there is none of
// no_op.
std::optional<FittedModel> fit_model(std::span<const SerialCurve> curves, const FitConditions& conditions);

}  // namespace farsum::cost
