// Parameters fitted to serial reductions that the model itself made up.
#include "cost/serial_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;

constexpr FitConditions paper_conditions = {.half_round_trip_us = 2.10 + 0.42, .processors = 1000};

// Serial reductions of 2 to 13 ranks by the paper's model, as many ranks on a processor as there are too few of these.
SerialCurve curve_of(const ReducedVector& vector, std::uint64_t processors) {
  SerialCurve curve = {.vector = vector, .times = {}};
  for (std::uint64_t ranks = 2; ranks <= 13; ++ranks) {
    const double crowd = static_cast<double>(ranks) / static_cast<double>(processors);
    const auto terms = terms_of(paper_model(), vector, crowd);
    curve.times.push_back({.ranks = ranks, .us = serial_us(terms.value_or(ReductionTerms{}), ranks)});
  }
  return curve;
}

// Of everything in table 2, and of no_op.
std::vector<SerialCurve> curves_of_table_2(std::uint64_t processors) {
  std::vector<SerialCurve> curves;
  for (const CombineParameters& row : paper_model().combines) {
    for (const std::uint64_t elements : listed_elements)
      curves.push_back(curve_of({.op = row.op, .type = row.type, .elements = elements}, processors));
  }
  return curves;
}

void expect_table_2(const ReductionModel& model, double bound) {
  EXPECT_NEAR(model.latency_us, 2.10, bound);
  EXPECT_NEAR(model.receive_us, 0.42, bound);
  ASSERT_EQ(model.combines.size(), paper_model().combines.size());
  for (std::size_t row = 0; row < model.combines.size(); ++row) {
    EXPECT_EQ(model.combines[row].op, paper_model().combines[row].op);
    EXPECT_EQ(model.combines[row].type, paper_model().combines[row].type);
    EXPECT_NEAR(model.combines[row].overhead_us, 9.20, bound);
    for (std::size_t at = 0; at < listed_elements.size(); ++at)
      EXPECT_NEAR(model.combines[row].combine_us[at], paper_model().combines[row].combine_us[at], bound);
  }
}

TEST(SerialFit, gives_back_table_2_from_times_that_were_made_of_it) {
  const auto fitted = fit_model(curves_of_table_2(1000), paper_conditions);
  ASSERT_TRUE(fitted.has_value());
  expect_table_2(fitted->model, 1e-9);
  for (const auto& residuals : fitted->residuals_us) {
    for (const double residual : residuals) EXPECT_NEAR(residual, 0, 1e-9);
  }
}

TEST(SerialFit, takes_what_ranks_share_a_processor_for_no_cost_of_a_message) {
  FitConditions conditions = paper_conditions;
  conditions.processors = 2;
  const auto fitted = fit_model(curves_of_table_2(2), conditions);
  ASSERT_TRUE(fitted.has_value());
  expect_table_2(fitted->model, 1e-9);
  // As if each rank had a processor of its own, r would be many times the paper's.
  const auto blind = fit_model(curves_of_table_2(2), paper_conditions);
  ASSERT_TRUE(blind.has_value());
  EXPECT_GT(blind->model.receive_us, 5 * 0.42);
}

TEST(SerialFit, is_off_by_no_more_than_noise_of_a_known_size_allows) {
  constexpr double noise_us = 0.05;
  std::vector<SerialCurve> curves = curves_of_table_2(1000);
  std::mt19937 random(1);
  for (SerialCurve& curve : curves) {
    for (SerialTime& time : curve.times) time.us += noise_us * (static_cast<double>(random() % 2001) / 1000 - 1);
  }
  const auto fitted = fit_model(curves, paper_conditions);
  ASSERT_TRUE(fitted.has_value());
  // No slope of 12 points can be off by more than noise * sum |x - mean| / sum (x - mean)^2 = noise * 36 / 143, and c
  // is the difference of two. An intercept is off by the noise and by 6.5 slopes at the most, and L by a slope.
  constexpr double slope_bound = noise_us * 36 / 143;
  EXPECT_NEAR(fitted->model.receive_us, 0.42, slope_bound);
  expect_table_2(fitted->model, noise_us + 7.5 * slope_bound);
  for (std::size_t row = 0; row < fitted->model.combines.size(); ++row) {
    for (std::size_t at = 0; at < listed_elements.size(); ++at)
      EXPECT_NEAR(fitted->model.combines[row].combine_us[at], paper_model().combines[row].combine_us[at],
                  2 * slope_bound);
  }
}

TEST(SerialFit, leaves_residuals_of_a_line_that_add_up_to_nothing) {
  const std::vector<SerialTime> times = {{2, 11.0}, {3, 13.5}, {4, 13.0}, {7, 20.0}};
  const auto line = fit_line(times, 1000);
  ASSERT_TRUE(line.has_value());
  ASSERT_EQ(line->residuals_us.size(), times.size());
  EXPECT_NEAR(std::accumulate(line->residuals_us.begin(), line->residuals_us.end(), 0.0), 0, 1e-9);
  double moment = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double messages = static_cast<double>(times[i].ranks - 1);
    EXPECT_NEAR(line->intercept_us + line->slope_us * messages + line->residuals_us[i], times[i].us, 1e-9);
    moment += messages * line->residuals_us[i];
  }
  EXPECT_NEAR(moment, 0, 1e-9);
}

TEST(SerialFit, needs_two_numbers_of_ranks_and_a_curve_of_no_op) {
  const std::vector<SerialTime> same = {{2, 11.0}, {2, 12.0}};
  EXPECT_FALSE(fit_line(same, 1000).has_value());
  EXPECT_FALSE(fit_line({}, 1000).has_value());
  const std::vector<SerialCurve> curves = {curve_of({.op = Operator::sum, .type = ElementType::int32}, 1000)};
  EXPECT_FALSE(fit_model(curves, paper_conditions).has_value());
}

TEST(SerialFit, leaves_out_an_operator_of_which_a_size_was_not_measured) {
  std::vector<SerialCurve> curves = curves_of_table_2(1000);
  const ReducedVector missing = curves[5].vector;
  curves.erase(curves.begin() + 5);
  const auto fitted = fit_model(curves, paper_conditions);
  ASSERT_TRUE(fitted.has_value());
  EXPECT_EQ(fitted->model.combines.size(), paper_model().combines.size() - 1);
  EXPECT_FALSE(terms_of(fitted->model, missing).has_value());
  EXPECT_TRUE(fitted->residuals_us[5].empty());
  EXPECT_EQ(fitted->lines.size(), curves.size());
}

}  // namespace
}  // namespace farsum::cost
