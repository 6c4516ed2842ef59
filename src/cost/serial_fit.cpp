#include "cost/serial_fit.hpp"

#include <algorithm>
#include <cstddef>

namespace farsum::cost {
namespace {

using ops::Operator;

double ratio(std::uint64_t ranks, std::uint64_t processors) {
  return static_cast<double>(ranks) / static_cast<double>(processors);
}

double crowded_messages(std::uint64_t ranks, std::uint64_t processors) {
  return static_cast<double>(ranks - 1) * crowding(ratio(ranks, processors));
}

// The time of a packet: the line through the origin and the slopes of no_op by packets. Nothing where there is none.
std::optional<double> fit_receive_us(std::span<const SerialCurve> curves, std::span<const SerialLine> lines,
                                     std::uint64_t packet_bytes) {
  const ReductionModel unit = {.receive_us = 1, .packet_bytes = packet_bytes, .combines = {}};
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].vector.op != Operator::no_op) continue;
    const double packets = receive_us(unit, curves[i].vector);
    products += packets * lines[i].slope_us;
    squares += packets * packets;
  }
  if (squares == 0) return std::nullopt;
  return products / squares;
}

// The parameters of the operator and type of one vector, from the first curve of each size; nothing where one listed is
// missing.
std::optional<CombineParameters> fit_combines(std::span<const SerialCurve> curves, std::span<const SerialLine> lines,
                                              const ReducedVector& like, const ReductionModel& model) {
  CombineParameters row = {.op = like.op, .type = like.type};
  std::size_t listed = 0;
  double intercepts = 0;
  for (std::size_t at = 0; at < listed_elements.size(); ++at) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
      const ReducedVector& vector = curves[i].vector;
      if (vector.op != like.op || vector.type != like.type || vector.elements != listed_elements[at]) continue;
      // Noise can put what is cheap below no_op, and nothing takes less than no time.
      const double rest = lines[i].slope_us - receive_us(model, vector);
      row.combine_us[at] = like.op == Operator::no_op ? 0 : std::max(0.0, rest);
      intercepts += lines[i].intercept_us;
      ++listed;
      break;
    }
  }
  if (listed < listed_elements.size()) return std::nullopt;
  row.overhead_us = intercepts / static_cast<double>(listed) - model.latency_us;
  return row;
}

bool has(const ReductionModel& model, const ReducedVector& vector) { return terms_of(model, vector).has_value(); }

std::vector<double> residuals_of(const ReductionModel& model, const SerialCurve& curve, std::uint64_t processors) {
  std::vector<double> residuals;
  for (const SerialTime& time : curve.times) {
    const auto terms = terms_of(model, curve.vector, ratio(time.ranks, processors));
    if (terms) residuals.push_back(time.us - serial_us(*terms, time.ranks));
  }
  return residuals;
}

}  // namespace

std::optional<SerialLine> fit_line(std::span<const SerialTime> times, std::uint64_t processors) {
  const auto count = static_cast<double>(times.size());
  double mean_x = 0;
  double mean_us = 0;
  for (const SerialTime& time : times) {
    mean_x += crowded_messages(time.ranks, processors) / count;
    mean_us += time.us / count;
  }
  double products = 0;
  double squares = 0;
  for (const SerialTime& time : times) {
    const double x = crowded_messages(time.ranks, processors) - mean_x;
    products += x * (time.us - mean_us);
    squares += x * x;
  }
  const auto is_other = [&](const SerialTime& time) { return time.ranks != times.front().ranks; };
  if (std::ranges::none_of(times, is_other)) return std::nullopt;
  SerialLine line = {.slope_us = products / squares, .residuals_us = {}};
  line.intercept_us = mean_us - line.slope_us * mean_x;
  for (const SerialTime& time : times)
    line.residuals_us.push_back(time.us - line.intercept_us - line.slope_us * crowded_messages(time.ranks, processors));
  return line;
}

std::optional<FittedModel> fit_model(std::span<const SerialCurve> curves, const FitConditions& conditions) {
  FittedModel fitted;
  for (const SerialCurve& curve : curves) {
    const auto line = fit_line(curve.times, conditions.processors);
    if (!line) return std::nullopt;
    fitted.lines.push_back(*line);
  }
  const auto receive = fit_receive_us(curves, fitted.lines, conditions.packet_bytes);
  if (!receive) return std::nullopt;
  ReductionModel& model = fitted.model;
  model.receive_us = *receive;
  model.packet_bytes = conditions.packet_bytes;
  model.latency_us = std::max(0.0, conditions.half_round_trip_us - *receive);
  for (const SerialCurve& curve : curves) {
    if (has(model, curve.vector)) continue;
    if (const auto row = fit_combines(curves, fitted.lines, curve.vector, model)) model.combines.push_back(*row);
  }
  for (const SerialCurve& curve : curves)
    fitted.residuals_us.push_back(residuals_of(model, curve, conditions.processors));
  return fitted;
}

}  // namespace farsum::cost
