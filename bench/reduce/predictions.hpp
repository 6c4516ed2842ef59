// Tables 1 and 2 and figures 2, 10 and 14 of paper 5, and two of its times at scale, as the model of reductions and the
// event times of trees have them. Nothing here is measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/reduction_model.hpp"

namespace bench {

namespace cost = farsum::cost;

// How a tree's time is predicted: by the paper's formula, or event by event, each node taking its children in the order
// of appendix A or in that in which they come.
enum class Curve : std::uint8_t { formula, events_slot, events_arrival };
inline constexpr std::array curves = {Curve::formula, Curve::events_slot, Curve::events_arrival};
const char* name_of(Curve curve);
const char* type_text(farsum::ops::ElementType type);         // "float64"
std::string operation_of(const cost::ReducedVector& vector);  // "float64 sum"
std::string name_of(const cost::ReducedVector& vector);       // "float64 sum, 2 elements"
double combine_us(const cost::ReductionModel& model, const cost::ReducedVector& vector);

// By ranks, from 2 on.
struct SerialRow {
  cost::ReducedVector vector;
  std::vector<double> us;
};

// By degree, from 2 on.
struct DegreeRow {
  cost::ReducedVector vector;
  Curve curve;
  std::vector<double> us;
  cost::DegreeChoice best;
  std::uint64_t paper_best;
};

struct ScaleRow {
  cost::ReducedVector vector;
  Curve curve;
  double us;
  double paper_us;  // measured, a barrier included
};

struct CrossingRow {
  double combine_us;
  double height;        // L / (r + c) - 1
  double degree;        // where f (ln f - 1) reaches it
  std::uint64_t whole;  // the best degree that a tree can have
};

struct Predictions {
  std::vector<SerialRow> serial;       // figure 2
  std::vector<DegreeRow> degrees;      // figure 10
  std::vector<ScaleRow> scale;         // section 6.3
  std::vector<CrossingRow> crossings;  // figure 14
};

inline constexpr std::uint64_t most_serial_ranks = 13;
inline constexpr std::uint64_t figure_10_nodes = 31;
inline constexpr std::uint64_t most_drawn_degree = 8;
inline constexpr std::uint64_t scale_nodes = 906;
inline constexpr std::uint64_t scale_degree = 4;

// The model has what table 2 has.
Predictions predict_figures(const cost::ReductionModel& model);

}  // namespace bench
