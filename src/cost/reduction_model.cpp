#include "cost/reduction_model.hpp"

#include <algorithm>
#include <cmath>

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;

constexpr double paper_overhead_us = 9.20;

ReductionModel table_2() {
  return {.latency_us = 2.10,
          .receive_us = 0.42,
          .packet_bytes = 64,
          .combines = {{Operator::max, ElementType::int32, paper_overhead_us, {0.27, 0.46, 0.84, 1.60}},
                       {Operator::sum, ElementType::int32, paper_overhead_us, {0.25, 0.44, 0.76, 1.44}},
                       {Operator::max, ElementType::float64, paper_overhead_us, {0.67, 1.27, 2.44, 4.80}},
                       {Operator::sum, ElementType::float64, paper_overhead_us, {1.50, 2.95, 5.80, 11.56}},
                       {Operator::no_op, ElementType::int32, paper_overhead_us, {}},
                       {Operator::no_op, ElementType::float64, paper_overhead_us, {}}}};
}

const CombineParameters* find(const ReductionModel& model, Operator op, ElementType type) {
  const auto found = std::find_if(model.combines.begin(), model.combines.end(),
                                  [&](const CombineParameters& row) { return row.op == op && row.type == type; });
  return found == model.combines.end() ? nullptr : &*found;
}

std::int64_t nanoseconds(double us) { return std::llround(us * 1000); }

}  // namespace

const ReductionModel& paper_model() {
  // Never destroyed: exit handlers of the program may still call Farsum.
  static const auto* const model = new ReductionModel(table_2());
  return *model;
}

std::optional<ReductionTerms> terms_of(const ReductionModel& model, const ReducedVector& vector,
                                       double ranks_per_processor) {
  const CombineParameters* row = find(model, vector.op, vector.type);
  if (row == nullptr) return std::nullopt;
  const double message = receive_us(model, vector) + combine_us(*row, vector.elements);
  return ReductionTerms{.overhead_us = row->overhead_us,
                        .latency_us = model.latency_us,
                        .message_us = message * crowding(ranks_per_processor),
                        .is_extrapolated = vector.elements > listed_elements.back()};
}

double crowding(double ranks_per_processor) { return std::max(1.0, ranks_per_processor); }

double receive_us(const ReductionModel& model, const ReducedVector& vector) {
  const std::uint64_t bytes = vector.elements * ops::size_of(vector.type);
  const std::uint64_t packets = std::max<std::uint64_t>(1, (bytes + model.packet_bytes - 1) / model.packet_bytes);
  return static_cast<double>(packets) * model.receive_us;
}

double combine_us(const CombineParameters& parameters, std::uint64_t elements) {
  if (elements == 0) return 0;
  // The first listed number that is not smaller, or the last: the line goes through it and the one before.
  std::size_t upper = 1;
  while (upper + 1 < listed_elements.size() && listed_elements[upper] < elements) ++upper;
  const auto from = static_cast<double>(listed_elements[upper - 1]);
  const auto to = static_cast<double>(listed_elements[upper]);
  const double from_us = parameters.combine_us[upper - 1];
  const double per_element = (parameters.combine_us[upper] - from_us) / (to - from);
  return from_us + (static_cast<double>(elements) - from) * per_element;
}

double serial_us(const ReductionTerms& terms, std::uint64_t nodes) {
  if (nodes <= 1) return terms.overhead_us;
  return terms.overhead_us + terms.latency_us + static_cast<double>(nodes - 1) * terms.message_us;
}

double full_tree_us(const ReductionTerms& terms, std::uint64_t degree, unsigned phases) {
  return terms.overhead_us + phases * (terms.latency_us + static_cast<double>(degree - 1) * terms.message_us);
}

double tree_us(const ReductionTerms& terms, std::uint64_t nodes, std::uint64_t degree) {
  const TreePhases phases = phases_of(nodes, degree);
  const std::uint64_t messages = phases.full * (degree - 1) + phases.last_children;
  return terms.overhead_us + phases.all * terms.latency_us + static_cast<double>(messages) * terms.message_us;
}

TreePhases phases_of(std::uint64_t nodes, std::uint64_t degree) {
  TreePhases phases;
  std::uint64_t power = 1;
  while (power <= nodes / degree) {
    power *= degree;
    ++phases.full;
  }
  phases.last_children = (nodes - 1) / power;  // the ceiling of nodes / power, less one
  phases.all = phases.full + (power < nodes ? 1 : 0);
  return phases;
}

DegreeChoice best_of(const std::vector<double>& us_by_degree) {
  DegreeChoice choice = {.us = us_by_degree.front(), .second_us = us_by_degree.front()};
  for (std::size_t i = 1; i < us_by_degree.size(); ++i) {
    const double us = us_by_degree[i];
    const std::uint64_t degree = i + 2;
    if (nanoseconds(us) < nanoseconds(choice.us)) {
      choice = {.degree = degree, .us = us, .second = choice.degree, .second_us = choice.us};
    } else if (choice.second == choice.degree || nanoseconds(us) < nanoseconds(choice.second_us)) {
      choice.second = degree;
      choice.second_us = us;
    }
  }
  return choice;
}

DegreeChoice best_degree(const ReductionTerms& terms, std::uint64_t nodes) {
  std::vector<double> times;
  for (std::uint64_t degree = 2; degree <= std::clamp<std::uint64_t>(nodes, 2, most_degree); ++degree)
    times.push_back(tree_us(terms, nodes, degree));
  return best_of(times);
}

double best_full_degree(const ReductionTerms& terms) {
  const double wanted = terms.latency_us / terms.message_us - 1;
  double low = 1;
  double high = static_cast<double>(most_degree);
  // The left side grows from -1, which is below what is wanted, and 60 halvings are more than a double can tell apart.
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (middle * (std::log(middle) - 1) < wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace farsum::cost
