// Which trees are taken for pieces of long vectors: as the table chooses by operator and type, and one where it does
// not choose.
#include "cost/piece_trees.hpp"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/reduction_model.hpp"

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;
using testing::ElementsAre;

constexpr std::size_t piece_bytes = 4096;

// Of a machine whose messages cost little, and its sums of floating-point numbers alone much.
TreeRule with_one_dear_operator() {
  TreeRule rule;
  rule.has_table = 1;
  rule.table.latency_ns = 100'000;
  rule.table.receive_ns = 100;
  rule.table.packet_bytes = 4096;
  rule.table.row_count = 2;
  rule.table.row[0] = {.op = Operator::max, .type = ElementType::float64, .combine_ns = {1, 2, 4, 8}};
  rule.table.row[1] = {.op = Operator::sum, .type = ElementType::float64, .combine_ns = {1000, 2000, 4000, 8000}};
  return rule;
}

std::vector<std::uint32_t> degrees_of(const TreeRule& rule, std::uint32_t nodes) {
  const PieceTrees trees(rule, nodes, piece_bytes);
  return {trees.degrees().begin(), trees.degrees().end()};
}

TEST(PieceTrees, are_one_where_no_table_chooses) {
  EXPECT_THAT(degrees_of({}, 31), ElementsAre(0));
  TreeRule forced = with_one_dear_operator();
  forced.forced_degree = 7;
  EXPECT_THAT(degrees_of(forced, 31), ElementsAre(7));
  EXPECT_EQ(PieceTrees(forced, 31, piece_bytes).number_of(Operator::sum, ElementType::float64), 0U);
}

TEST(PieceTrees, are_those_of_the_table_by_operator_and_type) {
  for (const std::uint32_t nodes : {2U, 3U, 5U, 12U, 13U, 31U, 512U}) {
    const PieceTrees trees(with_one_dear_operator(), nodes, piece_bytes);
    const auto degree_of = [&](Operator op, ElementType type) { return trees.degrees()[trees.number_of(op, type)]; };
    for (const Operator op : {Operator::max, Operator::sum})
      EXPECT_EQ(degree_of(op, ElementType::float64),
                degree_for(with_one_dear_operator(), {op, ElementType::float64, piece_bytes / 8}, nodes))
          << nodes << " nodes";
    // Of what is not listed nothing is combined.
    EXPECT_EQ(degree_of(Operator::bxor, ElementType::uint64), degree_of(Operator::max, ElementType::float64));
  }
}

TEST(PieceTrees, differ_where_combining_is_dear_beside_a_letters_way) {
  EXPECT_THAT(degrees_of(with_one_dear_operator(), 31), ElementsAre(4, 2));
  EXPECT_THAT(degrees_of(with_one_dear_operator(), 5), ElementsAre(0, 2));
  EXPECT_THAT(degrees_of(with_one_dear_operator(), 2), ElementsAre(0));
}

}  // namespace
}  // namespace farsum::cost
