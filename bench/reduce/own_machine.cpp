#include "own_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "base/settings.hpp"
#include "runtime/link_models.hpp"

namespace bench {
namespace {

double ranks_a_processor(std::uint64_t nodes, std::uint64_t processors) {
  return static_cast<double>(nodes) / static_cast<double>(processors);
}

// A reduction that combines nothing is measured without elements.
bool is_of_figure_2(const cost::ReducedVector& vector) {
  using farsum::ops::Operator;
  return vector.op == Operator::no_op || (vector.op == Operator::sum && vector.elements <= 2);
}

std::vector<OwnSerialRow> serial_rows_of(const farsum::ReductionParameters& parameters) {
  std::vector<OwnSerialRow> rows;
  for (std::size_t i = 0; i < parameters.measured.curves.size(); ++i) {
    const cost::SerialCurve& curve = parameters.measured.curves[i];
    if (!is_of_figure_2(curve.vector)) continue;
    // Of an operator that the model has not got, the line is that of the curve alone.
    const std::vector<double>& of_model = parameters.fitted.residuals_us[i];
    const std::vector<double>& missed = of_model.empty() ? parameters.fitted.lines[i].residuals_us : of_model;
    OwnSerialRow row = {.vector = curve.vector, .points = {}};
    for (std::size_t at = 0; at < curve.times.size(); ++at) {
      const double us = curve.times[at].us;
      row.points.push_back({.nodes = curve.times[at].ranks, .fitted_us = us - missed[at], .measured_us = us});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Of equals, in whole nanoseconds, the first.
std::size_t least_of(const std::vector<DegreePoint>& points, double DegreePoint::*us) {
  const auto ns = [us](const DegreePoint& point) { return std::llround(point.*us * 1000); };
  return static_cast<std::size_t>(std::ranges::min_element(points, {}, ns) - points.begin());
}

std::vector<OwnDegreeRow> degree_rows_of(const cost::ReductionModel& model, const farsum::MeasuredTrees& trees) {
  std::vector<OwnDegreeRow> rows;
  for (const farsum::TreeCurve& curve : trees.curves) {
    const auto terms = cost::terms_of(model, curve.vector, ranks_a_processor(trees.nodes, trees.processors));
    if (!terms) continue;
    OwnDegreeRow row = {.vector = curve.vector, .points = {}};
    for (const farsum::TreeTime& time : curve.times)
      row.points.push_back({time.degree, cost::tree_us(*terms, trees.nodes, time.degree), time.us});
    row.predicted_best = least_of(row.points, &DegreePoint::predicted_us);
    row.measured_best = least_of(row.points, &DegreePoint::measured_us);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

OwnMachine read_own_machine() {
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  auto settings = farsum::read_settings(environment);
  if (!settings.is_ok()) throw std::runtime_error(settings.take_status().text());
  const std::string folder = farsum::model_folder(settings.value(), environment);
  OwnMachine own = {.parameters = farsum::read_reduction_parameters(folder),
                    .trees = farsum::read_measured_trees(folder),
                    .serial = {},
                    .degrees = {}};
  if (!own.parameters.is_measured()) return own;
  own.serial = serial_rows_of(own.parameters);
  own.degrees = degree_rows_of(own.parameters.model, own.trees);
  return own;
}

}  // namespace bench
