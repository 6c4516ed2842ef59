// What each node does between nodes in a reduction, and what follows from its list.
#include "collectives/reduction_lists.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "cost/tree_rule.hpp"
#include "dear_sums.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

std::set<std::uint32_t> receivers_of(std::span<const trees::Step> steps) {
  std::set<std::uint32_t> receivers;
  for (const trees::Step& step : steps) {
    if (step.action == trees::Action::send) receivers.insert(step.peer);
  }
  return receivers;
}

TEST(ReductionLists, of_few_nodes_tell_all_others_before_they_hear_any) {
  for (std::uint32_t mine = 0; mine < 3; ++mine) {
    const ReductionLists lists(3, mine, ReductionLists::degree_between(3, 0));
    ASSERT_TRUE(lists.is_flat());
    EXPECT_EQ(lists.up().size(), 2u);
    EXPECT_EQ(lists.down().size(), 2u);
    EXPECT_EQ(receivers_of(lists.up()).size(), 2u);
    EXPECT_TRUE(receivers_of(lists.down()).empty());
    for (std::uint32_t node = 0; node < 3; ++node) {
      EXPECT_EQ(lists.sends_to(node), node != mine);
      EXPECT_FALSE(lists.is_behind(node));
    }
  }
}

TEST(ReductionLists, go_up_to_the_parent_and_down_to_the_children_of_any_tree) {
  for (const std::uint32_t degree : {2U, 3U, 8U}) {
    for (const std::uint32_t nodes : {2U, 5U, 13U, 64U}) {
      const trees::Fnomial tree(nodes, degree);
      for (std::uint32_t mine = 0; mine < nodes; ++mine) {
        const ReductionLists lists(nodes, mine, degree);
        std::set<std::uint32_t> children;
        for (const auto& child : tree.children(mine)) children.insert(child.node);
        const auto parent = tree.parent(mine);
        EXPECT_EQ(lists.parent_of(mine), parent);
        EXPECT_EQ(receivers_of(lists.up()), parent ? std::set<std::uint32_t>{*parent} : std::set<std::uint32_t>{});
        EXPECT_EQ(receivers_of(lists.down()), children);
        for (std::uint32_t node = 0; node < nodes; ++node) EXPECT_EQ(lists.is_behind(node), children.contains(node));
      }
    }
  }
}

TEST(ReductionLists, have_a_tree_where_one_is_wanted_and_else_where_nodes_are_many) {
  EXPECT_EQ(ReductionLists::degree_between(3, 0), 0u);
  EXPECT_EQ(ReductionLists::degree_between(3, 4), 4u);
  EXPECT_EQ(ReductionLists::degree_between(1000, 0), 2u);
  EXPECT_EQ(ReductionLists::tree_degree(0), 2u);
  EXPECT_EQ(ReductionLists::tree_degree(5), 5u);
}

TEST(ReductionLists, of_further_pieces_are_those_of_the_first_without_a_table) {
  ReductionLists lists(16, 3, 2);
  EXPECT_EQ(lists.tree_of_further_piece(ops::Operator::sum, ops::ElementType::float64), nullptr);
  cost::TreeRule usual;
  lists.choose_piece_trees(usual, 1024);
  EXPECT_EQ(lists.tree_of_further_piece(ops::Operator::sum, ops::ElementType::float64), nullptr);
}

TEST(ReductionLists, of_further_pieces_are_of_the_degree_that_their_operator_and_type_have) {
  const cost::TreeRule rule = dear_sums();
  constexpr std::uint32_t nodes = 16;
  ReductionLists lists(nodes, 0, 2);
  lists.choose_piece_trees(rule, 1024);
  const auto* const sums = lists.tree_of_further_piece(ops::Operator::sum, ops::ElementType::float64);
  const auto* const others = lists.tree_of_further_piece(ops::Operator::max, ops::ElementType::int32);
  ASSERT_NE(sums, nullptr);
  ASSERT_NE(others, nullptr);
  EXPECT_LT(sums->degree, others->degree);
  for (const auto* const tree : {sums, others})
    EXPECT_EQ(tree->list.size(), 2 * trees::Fnomial(nodes, tree->degree).children(0).size());
}

}  // namespace
}  // namespace farsum
