// Which tree so many nodes take by what rank 0 has told: the same for the same bytes, as the table has it, and by the
// number of nodes where nothing that is known was told.
#include "cost/tree_rule.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include "cost/meeting_model.hpp"
#include "cost/reduction_model.hpp"

namespace farsum::cost {
namespace {

using ops::ElementType;
using ops::Operator;

TreeRule by_paper() {
  TreeRule rule;
  rule.has_table = 1;
  rule.table = table_of(paper_model());
  return rule;
}

TEST(TreeRule, leaves_it_to_the_number_of_nodes_where_there_is_no_table) {
  for (const std::uint32_t nodes : {1U, 2U, 12U, 13U, 1000U}) EXPECT_EQ(usual_degree({}, nodes), 0U) << nodes;
}

TEST(TreeRule, has_what_is_forced_whatever_a_table_says) {
  TreeRule rule = by_paper();
  rule.forced_degree = 7;
  for (const std::uint32_t nodes : {2U, 5U, 31U}) EXPECT_EQ(usual_degree(rule, nodes), 7U) << nodes;
}

TEST(TreeRule, has_the_degree_that_the_table_chooses_for_one_number) {
  EXPECT_EQ(usual_degree(by_paper(), 31), 4U);
  for (std::uint32_t nodes = most_flat_nodes + 1; nodes < 1000; ++nodes)
    ASSERT_EQ(usual_degree(by_paper(), nodes),
              choose_degree(by_paper().table, {Operator::sum, ElementType::float64, 1}, nodes));
}

// A tree in which all send to one has the others wait for its answer.
TEST(TreeRule, has_few_nodes_tell_each_other_where_the_table_has_all_send_to_one) {
  TreeRule rule = by_paper();
  rule.table.latency_ns = 1'000'000;
  for (std::uint32_t nodes = 1; nodes <= most_flat_nodes; ++nodes) {
    EXPECT_EQ(usual_degree(rule, nodes), 0U) << nodes;
    EXPECT_TRUE(meet_at_once(nodes)) << nodes << " nodes would take a tree where no model chooses";
  }
  EXPECT_EQ(usual_degree(rule, most_flat_nodes + 1), 4U);
}

TEST(TreeRule, has_few_nodes_take_a_tree_where_messages_are_dear) {
  TreeRule rule = by_paper();
  rule.table.latency_ns = 1;
  EXPECT_EQ(usual_degree(rule, 2), 0U);
  EXPECT_EQ(usual_degree(rule, 5), 2U);
}

TEST(TreeRule, is_that_of_the_number_of_nodes_where_what_was_told_makes_no_sense) {
  const auto has_table = [](const TreeRule& told) { return rule_as_told(told).has_table != 0; };
  EXPECT_TRUE(has_table(by_paper()));
  TreeRule told = by_paper();
  told.version += 1;
  EXPECT_FALSE(has_table(told));
  told = by_paper();
  told.table.row_count = ReductionTable::most_rows + 1;
  EXPECT_FALSE(has_table(told));
  told = by_paper();
  told.table.row[1].op = static_cast<Operator>(ops::operator_count);
  EXPECT_FALSE(has_table(told));
  told = by_paper();
  told.table.row[1].type = static_cast<ElementType>(ops::element_type_count);
  EXPECT_FALSE(has_table(told));
  told = by_paper();
  told.forced_degree = 1;
  EXPECT_FALSE(has_table(told));
}

}  // namespace
}  // namespace farsum::cost
