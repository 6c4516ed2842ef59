#include "predictions.hpp"

#include <cmath>

#include <fmt/format.h>

#include "trees/timing.hpp"

namespace bench {
namespace {

namespace trees = farsum::trees;
using farsum::ops::ElementType;
using farsum::ops::Operator;

std::int64_t nanoseconds(double us) { return std::llround(us * 1000); }

cost::ReductionTerms known_terms(const cost::ReductionModel& model, const cost::ReducedVector& vector) {
  return cost::terms_of(model, vector).value_or(cost::ReductionTerms{});
}

double event_us(const cost::ReductionModel& model, const cost::ReducedVector& vector, std::uint64_t nodes,
                std::uint64_t degree, trees::ChildOrder order) {
  const auto part = [&](std::uint64_t elements) {
    return cost::ReducedVector{.op = vector.op, .type = vector.type, .elements = elements};
  };
  const cost::ReductionTerms terms = known_terms(model, vector);
  trees::Costs costs;
  costs.latency_ns = nanoseconds(terms.latency_us);
  costs.overhead_ns = nanoseconds(terms.overhead_us);
  costs.receive_ns = [&](std::uint64_t elements) { return nanoseconds(cost::receive_us(model, part(elements))); };
  costs.combine_ns = [&](std::uint64_t elements) { return nanoseconds(combine_us(model, part(elements))); };
  const trees::Shape shape = {.nodes = static_cast<std::uint32_t>(nodes),
                              .elements = vector.elements,
                              .degree = static_cast<std::uint32_t>(degree)};
  return static_cast<double>(trees::event_times(shape, costs, order).root_ns) / 1000;
}

double tree_us(const cost::ReductionModel& model, const cost::ReducedVector& vector, std::uint64_t nodes,
               std::uint64_t degree, Curve curve) {
  switch (curve) {
    case Curve::formula:
      return cost::tree_us(known_terms(model, vector), nodes, degree);
    case Curve::events_slot:
      return event_us(model, vector, nodes, degree, trees::ChildOrder::slot);
    case Curve::events_arrival:
      return event_us(model, vector, nodes, degree, trees::ChildOrder::arrival);
  }
  return 0;
}

std::vector<SerialRow> predict_serial(const cost::ReductionModel& model) {
  std::vector<SerialRow> rows;
  for (const cost::ReducedVector& vector : {cost::ReducedVector{Operator::no_op, ElementType::int32, 1},
                                            {Operator::sum, ElementType::int32, 1},
                                            {Operator::sum, ElementType::int32, 2},
                                            {Operator::sum, ElementType::float64, 1},
                                            {Operator::sum, ElementType::float64, 2}}) {
    SerialRow row = {.vector = vector, .us = {}};
    for (std::uint64_t ranks = 2; ranks <= most_serial_ranks; ++ranks)
      row.us.push_back(cost::serial_us(known_terms(model, vector), ranks));
    rows.push_back(row);
  }
  return rows;
}

std::vector<DegreeRow> predict_degrees(const cost::ReductionModel& model) {
  std::vector<DegreeRow> rows;
  for (const std::uint64_t elements : cost::listed_elements) {
    for (const Curve curve : curves) {
      DegreeRow row = {.vector = {Operator::sum, ElementType::float64, elements},
                       .curve = curve,
                       .us = {},
                       .best = {},
                       .paper_best = elements == 1 ? 4u : 2u};
      for (std::uint64_t degree = 2; degree <= most_drawn_degree; ++degree)
        row.us.push_back(tree_us(model, row.vector, figure_10_nodes, degree, curve));
      row.best = cost::best_of(row.us);
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<ScaleRow> predict_scale(const cost::ReductionModel& model) {
  std::vector<ScaleRow> rows;
  for (const auto& [type, paper_us] : {std::pair(ElementType::int32, 40.0), std::pair(ElementType::float64, 65.0)}) {
    for (const Curve curve : curves) {
      const cost::ReducedVector vector = {Operator::sum, type, 1};
      rows.push_back({vector, curve, tree_us(model, vector, scale_nodes, scale_degree, curve), paper_us});
    }
  }
  return rows;
}

// Of a full tree, whose nodes do not matter: the time by which the logarithm of the nodes is to be multiplied.
std::uint64_t best_whole_degree(const cost::ReductionTerms& terms) {
  std::vector<double> times;
  for (std::uint64_t degree = 2; degree <= cost::most_degree; ++degree)
    times.push_back((cost::full_tree_us(terms, degree, 1) - terms.overhead_us) / std::log(static_cast<double>(degree)));
  return cost::best_of(times).degree;
}

std::vector<CrossingRow> predict_crossings(const cost::ReductionModel& model) {
  std::vector<CrossingRow> rows;
  for (const cost::ReducedVector& vector : {cost::ReducedVector{Operator::no_op, ElementType::float64, 1},
                                            {Operator::sum, ElementType::int32, 1},
                                            {Operator::max, ElementType::float64, 1},
                                            {Operator::sum, ElementType::float64, 1},
                                            {Operator::sum, ElementType::float64, 2},
                                            {Operator::sum, ElementType::float64, 4},
                                            {Operator::sum, ElementType::float64, 8}}) {
    const cost::ReductionTerms terms = known_terms(model, vector);
    rows.push_back({.combine_us = combine_us(model, vector),
                    .height = terms.latency_us / terms.message_us - 1,
                    .degree = cost::best_full_degree(terms),
                    .whole = best_whole_degree(terms)});
  }
  return rows;
}

}  // namespace

const char* name_of(Curve curve) {
  switch (curve) {
    case Curve::formula:
      return "formula";
    case Curve::events_slot:
      return "events, slot order";
    case Curve::events_arrival:
      return "events, arrival order";
  }
  return "unknown";
}

const char* type_text(ElementType type) {
  if (type == ElementType::int32) return "int32";
  return type == ElementType::float64 ? "float64" : farsum::ops::name_of(type);
}

std::string operation_of(const cost::ReducedVector& vector) {
  return vector.op == Operator::no_op ? "no_op"
                                      : fmt::format("{} {}", type_text(vector.type), farsum::ops::name_of(vector.op));
}

std::string name_of(const cost::ReducedVector& vector) {
  if (vector.op == Operator::no_op) return operation_of(vector);
  return fmt::format("{}, {} element{}", operation_of(vector), vector.elements, vector.elements == 1 ? "" : "s");
}

double combine_us(const cost::ReductionModel& model, const cost::ReducedVector& vector) {
  return known_terms(model, vector).message_us - cost::receive_us(model, vector);
}

Predictions predict_figures(const cost::ReductionModel& model) {
  return {.serial = predict_serial(model),
          .degrees = predict_degrees(model),
          .scale = predict_scale(model),
          .crossings = predict_crossings(model)};
}

}  // namespace bench
