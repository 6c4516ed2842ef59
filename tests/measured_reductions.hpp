// Serial reductions as a machine of which a model is true would measure them.
#pragma once

#include <cstdint>

#include "cost/reduction_model.hpp"
#include "runtime/reduction_models.hpp"

namespace farsum::test {

inline cost::SerialCurve measured_curve(const cost::ReductionModel& model, const cost::ReducedVector& vector) {
  cost::SerialCurve curve{.vector = vector, .times = {}};
  for (std::uint64_t nodes = 2; nodes <= 13; ++nodes)
    curve.times.push_back({nodes, cost::serial_us(*cost::terms_of(model, vector), nodes)});
  return curve;
}

// Of all that the model has, on as many processors as nodes. Half a round trip is L + r.
inline SerialReductions measured_reductions(const cost::ReductionModel& model) {
  SerialReductions measured;
  measured.conditions = {.half_round_trip_us = model.latency_us + model.receive_us, .processors = 13};
  for (const cost::CombineParameters& combine : model.combines)
    for (const std::uint64_t elements : cost::listed_elements)
      measured.curves.push_back(measured_curve(model, {combine.op, combine.type, elements}));
  return measured;
}

// Of a machine on which a message takes so long beside a letter's way that few messages are better than few phases.
inline SerialReductions dear_messages() {
  cost::ReductionModel model = cost::paper_model();
  model.latency_us = 0.1;
  model.receive_us = 50;
  return measured_reductions(model);
}

}  // namespace farsum::test
