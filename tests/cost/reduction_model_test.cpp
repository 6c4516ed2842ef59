// The model of reductions against sums done by hand and what paper 5 says of its own.
#include "cost/reduction_model.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;

constexpr double third_digit = 0.005;

ReductionTerms paper_terms(Operator op, ElementType type, std::uint64_t elements) {
  return terms_of(paper_model(), {.op = op, .type = type, .elements = elements}).value_or(ReductionTerms{});
}
ReductionTerms float64_sum(std::uint64_t elements) {
  return paper_terms(Operator::sum, ElementType::float64, elements);
}

TEST(ReductionTerms, of_the_paper_are_table_2) {
  const ReductionTerms terms = paper_terms(Operator::max, ElementType::int32, 4);
  EXPECT_DOUBLE_EQ(terms.overhead_us, 9.20);
  EXPECT_DOUBLE_EQ(terms.latency_us, 2.10);
  EXPECT_DOUBLE_EQ(terms.message_us, 0.42 + 0.84);
  EXPECT_FALSE(terms.is_extrapolated);
  EXPECT_DOUBLE_EQ(paper_terms(Operator::no_op, ElementType::float64, 8).message_us, 0.42);
  EXPECT_FALSE(terms_of(paper_model(), {.op = Operator::prod, .type = ElementType::int32}).has_value());
}

TEST(ReductionTerms, between_listed_sizes_are_on_a_line_and_beyond_them_marked) {
  EXPECT_DOUBLE_EQ(float64_sum(3).message_us, 0.42 + (2.95 + 5.80) / 2);
  EXPECT_DOUBLE_EQ(float64_sum(6).message_us, 0.42 + (5.80 + 11.56) / 2);
  EXPECT_FALSE(float64_sum(8).is_extrapolated);
  EXPECT_TRUE(float64_sum(9).is_extrapolated);
  // The slope from 4 to 8 is 1.44 an element, and 128 bytes are two packets.
  EXPECT_NEAR(float64_sum(16).message_us, 2 * 0.42 + 23.08, 1e-9);
}

TEST(ReductionTerms, count_packets_of_64_bytes_and_at_least_one) {
  const auto receives = [](std::uint64_t elements) {
    return receive_us(paper_model(), {.op = Operator::sum, .type = ElementType::int32, .elements = elements});
  };
  EXPECT_DOUBLE_EQ(receives(0), 0.42);
  EXPECT_DOUBLE_EQ(receives(16), 0.42);
  EXPECT_DOUBLE_EQ(receives(17), 0.84);
  EXPECT_DOUBLE_EQ(float64_sum(0).message_us, 0.42);
}

TEST(ReductionTerms, are_longer_by_as_much_as_ranks_exceed_processors) {
  const ReducedVector vector = {.op = Operator::sum, .type = ElementType::float64, .elements = 1};
  const auto crowded = terms_of(paper_model(), vector, 4);
  const auto roomy = terms_of(paper_model(), vector, 0.5);
  ASSERT_TRUE(crowded && roomy);
  EXPECT_DOUBLE_EQ(crowded->message_us, 4 * 1.92);
  EXPECT_DOUBLE_EQ(crowded->latency_us, 2.10);
  EXPECT_DOUBLE_EQ(crowded->overhead_us, 9.20);
  EXPECT_DOUBLE_EQ(roomy->message_us, 1.92);
}

TEST(SerialReduction, is_one_latency_and_a_message_from_each_other_node) {
  EXPECT_NEAR(serial_us(float64_sum(1), 13), 9.20 + 2.10 + 12 * 1.92, 1e-9);
  EXPECT_NEAR(serial_us(float64_sum(1), 2), 9.20 + 2.10 + 1.92, 1e-9);
  EXPECT_DOUBLE_EQ(serial_us(float64_sum(1), 1), 9.20);
}

// A row of figure 10 as the formula has it, for degrees 2 to 8.
struct FormulaRow {
  std::uint64_t elements;
  std::array<double, 7> us;
  std::uint64_t best;
};

TEST(TreeReduction, on_31_nodes_takes_what_the_formula_says_and_the_paper_calls_best) {
  constexpr std::array rows = {
      FormulaRow{1, {29.30, 31.04, 28.94, 32.78, 32.60, 32.60, 32.60}, 4},
      FormulaRow{2, {36.55, 41.19, 39.09, 45.83, 47.10, 47.10, 47.10}, 2},
      FormulaRow{4, {50.80, 61.14, 59.04, 71.48, 75.60, 75.60, 75.60}, 2},
      FormulaRow{8, {79.60, 101.46, 99.36, 123.32, 133.20, 133.20, 133.20}, 2},
  };
  for (const FormulaRow& row : rows) {
    const ReductionTerms terms = float64_sum(row.elements);
    for (std::size_t i = 0; i < row.us.size(); ++i)
      EXPECT_NEAR(tree_us(terms, 31, i + 2), row.us[i], third_digit) << row.elements << " elements, degree " << i + 2;
    EXPECT_EQ(best_degree(terms, 31).degree, row.best) << row.elements << " elements";
  }
}

TEST(TreeReduction, on_906_nodes_by_a_tree_of_degree_4_takes_30_and_49_us) {
  EXPECT_NEAR(tree_us(paper_terms(Operator::sum, ElementType::int32, 1), 906, 4), 29.75, third_digit);
  EXPECT_NEAR(tree_us(float64_sum(1), 906, 4), 48.50, third_digit);
}

TEST(TreeReduction, with_as_many_children_as_there_are_others_is_serial) {
  const ReductionTerms terms = float64_sum(2);
  for (const std::uint64_t degree : {31u, 32u, 1000u})
    EXPECT_DOUBLE_EQ(tree_us(terms, 31, degree), serial_us(terms, 31)) << degree;
}

TEST(TreeReduction, of_one_node_is_the_overhead_whatever_the_degree) {
  for (const std::uint64_t degree : {2u, 3u, 64u}) EXPECT_DOUBLE_EQ(tree_us(float64_sum(8), 1, degree), 9.20);
}

TEST(TreeReduction, of_a_power_of_the_degree_is_the_full_tree) {
  for (std::uint64_t degree = 2; degree <= 8; ++degree) {
    std::uint64_t nodes = 1;
    for (unsigned phases = 0; phases <= 6; ++phases, nodes *= degree)
      EXPECT_NEAR(tree_us(float64_sum(1), nodes, degree), full_tree_us(float64_sum(1), degree, phases), 1e-9)
          << nodes << " nodes, degree " << degree;
  }
}

// Logarithms of doubles are off by one for some of these.
TEST(TreePhases, are_exact_at_powers_of_the_degree_and_beside_them) {
  for (const std::uint64_t degree : {2u, 3u, 5u, 6u, 7u, 10u, 1000u}) {
    std::uint64_t power = degree;
    for (unsigned phases = 1;; ++phases, power *= degree) {
      const TreePhases at = phases_of(power, degree);
      EXPECT_EQ(at.full, phases) << power;
      EXPECT_EQ(at.all, phases) << power;
      EXPECT_EQ(at.last_children, 0u) << power;
      const TreePhases below = phases_of(power - 1, degree);
      EXPECT_EQ(below.full, phases - 1) << power - 1;
      EXPECT_EQ(below.all, power - 1 == 1 ? 0 : phases) << power - 1;
      if (power > UINT64_MAX / degree) break;
      const TreePhases above = phases_of(power + 1, degree);
      EXPECT_EQ(above.full, phases) << power + 1;
      EXPECT_EQ(above.all, phases + 1) << power + 1;
      EXPECT_EQ(above.last_children, 1u) << power + 1;
    }
  }
}

TEST(TreePhases, of_16_nodes_and_degree_3_are_those_of_figure_8) {
  const TreePhases phases = phases_of(16, 3);
  EXPECT_EQ(phases.full, 2u);
  EXPECT_EQ(phases.all, 3u);
  EXPECT_EQ(phases.last_children, 1u);
}

TEST(BestDegree, comes_with_the_next_best_and_its_time) {
  const DegreeChoice one = best_degree(float64_sum(1), 31);
  EXPECT_EQ(one.second, 2u);
  EXPECT_NEAR(one.second_us - one.us, 0.36, third_digit);
  const DegreeChoice eight = best_degree(float64_sum(8), 31);
  EXPECT_EQ(eight.second, 4u);
  EXPECT_NEAR(eight.second_us - eight.us, 19.76, third_digit);
}

TEST(BestDegree, is_the_smaller_of_two_that_differ_by_less_than_a_nanosecond) {
  EXPECT_EQ(best_of({30.0, 27.0204, 27.0203, 28.0}).degree, 3u);
  EXPECT_EQ(best_of({30.0, 27.0204, 27.0203, 28.0}).second, 4u);
  EXPECT_EQ(best_of({30.0, 27.022, 27.020, 28.0}).degree, 4u);
  EXPECT_EQ(best_of({30.0, 27.022, 27.020, 28.0}).second, 3u);
  // A tree of three nodes has no degree but 2 and 3, one of two only 2.
  EXPECT_EQ(best_degree(float64_sum(1), 2).second, 2u);
  EXPECT_EQ(best_of({5.0, 6.0}).second, 3u);
}

TEST(BestDegree, is_none_over_64) {
  const ReductionTerms far = {.latency_us = 1e6, .message_us = 1e-3};
  EXPECT_EQ(best_degree(far, 1 << 20).degree, 32u);  // four phases, as up to 64, with the fewest messages
  EXPECT_NEAR(best_full_degree(far), 64, 1e-9);
}

TEST(BestFullDegree, is_where_the_curves_of_figure_14_cross) {
  struct Crossing {
    double combine_us;
    double degree;
  };
  for (const Crossing& crossing : {Crossing{0, 5.57}, Crossing{0.25, 4.41}, Crossing{0.67, 3.53}, Crossing{1.5, 2.81},
                                   Crossing{2.95, 2.31}, Crossing{5.8, 1.93}, Crossing{11.56, 1.65}}) {
    const ReductionTerms terms = {.latency_us = 2.10, .message_us = 0.42 + crossing.combine_us};
    EXPECT_NEAR(best_full_degree(terms), crossing.degree, third_digit) << crossing.combine_us;
  }
}

}  // namespace
}  // namespace farsum::cost
