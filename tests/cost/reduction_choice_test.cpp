// Which tree is chosen, in integers: near the model's own best, the same for the same table, and what is forced.
#include "cost/reduction_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;

const ReductionTable& paper_table() {
  static const ReductionTable table = table_of(paper_model());
  return table;
}

TEST(ReductionChoice, takes_the_time_that_the_formula_has) {
  for (const CombineParameters& row : paper_model().combines) {
    for (const std::uint64_t elements : {0, 1, 2, 3, 4, 8, 9, 100}) {
      const ReducedVector vector = {row.op, row.type, elements};
      const ReductionTerms terms = *terms_of(paper_model(), vector);
      for (std::uint64_t nodes = 1; nodes <= 600; nodes += 7) {
        for (std::uint64_t degree = 2; degree <= 8; ++degree) {
          const double us = tree_us(terms, nodes, degree) - terms.overhead_us;
          const auto ns = static_cast<double>(tree_ns(paper_table(), vector, nodes, degree));
          // Half a nanosecond is lost at most for each message.
          ASSERT_NEAR(ns, us * 1000, static_cast<double>(nodes)) << nodes << " nodes, degree " << degree;
        }
      }
    }
  }
}

TEST(ReductionChoice, is_2_or_4_of_many_nodes_and_may_be_flat_of_few) {
  const ReducedVector one_sum = {Operator::sum, ElementType::float64, 1};
  EXPECT_EQ(choose_degree(paper_table(), one_sum, 31), 4U);
  EXPECT_EQ(choose_degree(paper_table(), {Operator::sum, ElementType::float64, 8}, 31), 2U);
  EXPECT_EQ(choose_degree(paper_table(), {Operator::no_op, ElementType::int32, 1}, 5), 5U);
  EXPECT_EQ(choose_degree(paper_table(), {Operator::no_op, ElementType::int32, 1}, 13), 4U);
  EXPECT_EQ(choose_degree(paper_table(), one_sum, 1), 2U);
  EXPECT_EQ(choose_degree(paper_table(), one_sum, 2), 2U);
}

TEST(ReductionChoice, is_what_is_forced_as_far_as_there_are_nodes) {
  const ReducedVector vector = {Operator::sum, ElementType::float64, 1};
  EXPECT_EQ(choose_degree(paper_table(), vector, 31, 7), 7U);
  EXPECT_EQ(choose_degree(paper_table(), vector, 31, 100), 31U);
  EXPECT_EQ(choose_degree(paper_table(), vector, 31, 1), 2U);
}

TEST(ReductionChoice, takes_any_table_and_any_vector) {
  ReductionTable worst = paper_table();
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  worst.latency_ns = worst.receive_ns = most;
  worst.packet_bytes = 0;
  for (ReductionTable::Row& row : worst.row) row.combine_ns = {0, most, 0, most};
  for (const std::uint64_t elements : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{5}, most_told_apart,
                                       std::numeric_limits<std::uint64_t>::max()}) {
    const std::uint64_t degree = choose_degree(worst, {Operator::max, ElementType::float64, elements}, 60'000);
    EXPECT_TRUE(degree == 2 || degree == 4) << degree;
  }
  EXPECT_EQ(choose_degree({}, {}, 1000), 2U);
}

// Of many shapes one number, which another machine, compiler or way to round would have as well.
TEST(ReductionChoice, is_the_same_on_every_machine) {
  std::uint64_t all = 0;
  for (const ReductionTable::Row& row : paper_table().rows()) {
    for (std::uint64_t nodes = 2; nodes < 2000; ++nodes)
      all = all * 31 + choose_degree(paper_table(), {row.op, row.type, 1 + nodes % 9}, nodes);
  }
  EXPECT_EQ(all, 0xe4040a73f302ee8fU);
  EXPECT_EQ(hash_of(paper_table()), 0xdc029ea1cedb9b3cU);
}

TEST(ReductionTable, has_the_first_rows_of_a_model_with_too_many) {
  ReductionModel many = paper_model();
  while (many.combines.size() <= ReductionTable::most_rows) many.combines.push_back(many.combines.front());
  many.combines[ReductionTable::most_rows - 1].combine_us = {1, 2, 3, 4};
  const ReductionTable table = table_of(many);
  ASSERT_EQ(table.rows().size(), ReductionTable::most_rows);
  EXPECT_EQ(table.rows().back().combine_ns.back(), 4000U);
}

TEST(ReductionTable, has_another_hash_with_any_other_number) {
  ReductionTable other = paper_table();
  EXPECT_EQ(hash_of(other), hash_of(paper_table()));
  other.row[other.row_count - 1].combine_ns.back() += 1;
  EXPECT_NE(hash_of(other), hash_of(paper_table()));
  other = paper_table();
  other.latency_ns += 1;
  EXPECT_NE(hash_of(other), hash_of(paper_table()));
}

}  // namespace
}  // namespace farsum::cost
