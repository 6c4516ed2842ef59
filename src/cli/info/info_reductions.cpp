#include "cli/info/info_reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/info/info_model.hpp"
#include "cost/reduction_model.hpp"
#include "cost/tree_rule.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"
#include "runtime/reduction_models.hpp"
#include "runtime/reduction_schedules.hpp"

namespace farsum::cli {

namespace {

double to_the_nanosecond(double us) { return std::round(us * 1e3) / 1e3; }

// One decimal.
double percent(double part, double whole) { return std::round(part / whole * 1e3) / 10; }

Report origin_of(const ReductionParameters& parameters) {
  Report section;
  section["from"] = parameters.is_measured() ? fmt::format("measured {}: {}", parameters.when, parameters.source)
                                             : "built in: the network cards of paper 5";
  if (!parameters.complaint.empty()) section["complaint"] = parameters.complaint;
  if (!parameters.is_measured()) return section;
  const std::uint64_t processors = parameters.measured.conditions.processors;
  section["ranks_per_processor"] = fmt::format(
      "r + c are taken so many times where there are more ranks than processors: measured on {}", processors);
  return section;
}

Report row(const char* parameter, double us, const std::string& meaning) {
  return {{"parameter", parameter}, {"us", to_the_nanosecond(us)}, {"meaning", meaning}};
}

// Table 1 with the values that do not depend on the operator.
Report table_1(const cost::ReductionModel& model) {
  return Report::array(
      {row("L", model.latency_us, "from a send until the message can be received, and the answer's way back"),
       row("r(M)", model.receive_us,
           fmt::format("to receive a message, for each {} bytes of it", model.packet_bytes))});
}

Report table_2(const cost::ReductionModel& model) {
  Report rows = Report::array();
  for (const cost::CombineParameters& combine : model.combines) {
    Report row = {{"op", ops::name_of(combine.op)},
                  {"type", ops::name_of(combine.type)},
                  {"C(op)", to_the_nanosecond(combine.overhead_us)}};
    for (std::size_t i = 0; i < cost::listed_elements.size(); ++i)
      row[fmt::format("c({})", cost::listed_elements[i])] = to_the_nanosecond(combine.combine_us[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Of an operator that the model has not got those of its own line.
std::span<const double> residuals_of(const cost::FittedModel& fitted, std::size_t curve) {
  const std::vector<double>& of_model = fitted.residuals_us[curve];
  return of_model.empty() ? std::span(fitted.lines[curve].residuals_us) : std::span(of_model);
}

Report residual_rows(const ReductionParameters& parameters) {
  Report rows = Report::array();
  for (std::size_t i = 0; i < parameters.measured.curves.size(); ++i) {
    const cost::SerialCurve& curve = parameters.measured.curves[i];
    const std::span<const double> residuals = residuals_of(parameters.fitted, i);
    double worst = 0;
    Report times = Report::array();
    Report each = Report::array();
    for (std::size_t at = 0; at < residuals.size(); ++at) {
      worst = std::max(worst, std::abs(percent(residuals[at], curve.times[at].us)));
      times.push_back(std::round(curve.times[at].us * 10) / 10);
      each.push_back(std::round(residuals[at] * 10) / 10);
    }
    rows.push_back({{"op", ops::name_of(curve.vector.op)},
                    {"type", ops::name_of(curve.vector.type)},
                    {"elements", curve.vector.elements},
                    {"worst_percent", worst},
                    {"measured_us", std::move(times)},
                    {"residual_us", std::move(each)}});
  }
  return rows;
}

const char* decider_of(const cost::TreeRule& rule) {
  if (rule.forced_degree != 0) return "FARSUM_REDUCE_DEGREE";
  return rule.has_table != 0 ? "the model" : "the number of nodes";
}

std::string way_of(const ReductionSchedule& schedule) {
  return schedule.degree == 0 ? "each with all at once" : fmt::format("by a tree of degree {}", schedule.degree);
}

// Behind the first piece of so many that they fill one.
constexpr cost::ReducedVector long_sum = {ops::Operator::sum, ops::ElementType::float64, 4096};

// Of a job whose rank 0 is here. Ranks that have another hash for as many nodes would wait for one another.
Report schedule_rows(const cost::TreeRule& rule) {
  Report rows = Report::array();
  for (const std::uint32_t nodes : {2U, 3U, 4U, 8U, 12U, 13U, 16U, 32U, 64U}) {
    const ReductionSchedule schedule = reduction_schedule(nodes, cost::usual_degree(rule, nodes));
    rows.push_back({{"nodes", nodes},
                    {"reduce", way_of(schedule)},
                    {"rest_of_long_sums", way_of(reduction_schedule(nodes, cost::degree_for(rule, long_sum, nodes)))},
                    {"chosen_by", decider_of(rule)},
                    {"hash", fmt::format("{:016x}", schedule.hash)}});
  }
  return rows;
}

}  // namespace

Report describe_reductions(const std::string& folder, const Settings& settings) {
  const ReductionParameters parameters = read_reduction_parameters(folder);
  Report report;
  report["reductions"] = origin_of(parameters);
  report["reduction_parameters"] = table_1(parameters.model);
  report["reduction_times_us"] = table_2(parameters.model);
  if (parameters.is_measured()) report["serial_reductions"] = residual_rows(parameters);
  report["reduction_schedules"] = schedule_rows(read_tree_rule(settings, environment));
  return report;
}

}  // namespace farsum::cli
