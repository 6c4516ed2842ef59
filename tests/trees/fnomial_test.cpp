// The tree against the paper's own construction of it.
#include "trees/fnomial.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace farsum::trees {
namespace {

// Appendix A of paper 5, its misprints mended: `phase` is declared, `num_child` is `child_num`, and the list of
// receives has its end mark at the root as well. That the root is its own parent, and would send to itself, is left as
// printed.
struct AppendixA {
  std::vector<std::uint32_t> array_receives;
  std::uint32_t id_parent;
  std::uint32_t child_num = 0;

  AppendixA(std::uint32_t degree, std::uint32_t id_count, std::uint32_t id_local) : id_parent(id_local) {
    std::uint32_t phase = 0;
    std::uint32_t stride = 1;
    while (stride < id_count) {
      array_receives.push_back(0);
      if (id_local / stride % degree == 0) {
        for (std::uint32_t index = 0; index < degree - 1; ++index) {
          if (id_local + (index + 1) * stride < id_count) ++array_receives[phase];
        }
      } else {
        id_parent = id_local / (stride * degree) * (stride * degree);
        child_num = phase * (degree - 1) + id_local / stride % degree - 1;
        break;
      }
      stride *= degree;
      ++phase;
    }
    array_receives.push_back(0);
  }
};

std::vector<std::uint32_t> receives(const Fnomial& tree, std::uint32_t node, std::size_t phases) {
  std::vector<std::uint32_t> counts(phases);
  for (const Fnomial::Child& child : tree.children(node)) ++counts.at(child.phase);
  return counts;
}

TEST(FnomialTree, is_that_of_appendix_a) {
  for (std::uint32_t degree = 2; degree <= 8; ++degree) {
    for (std::uint32_t nodes = 1; nodes <= 130; ++nodes) {
      const Fnomial tree(nodes, degree);
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const AppendixA paper(degree, nodes, node);
        ASSERT_EQ(tree.parent(node).value_or(node), paper.id_parent) << degree << " " << nodes << " " << node;
        ASSERT_EQ(tree.slot(node), paper.child_num) << degree << " " << nodes << " " << node;
        ASSERT_EQ(receives(tree, node, paper.array_receives.size()), paper.array_receives)
            << degree << " " << nodes << " " << node;
      }
    }
  }
}

TEST(FnomialTree, gives_each_child_the_slot_that_its_parent_has_for_it) {
  for (std::uint32_t degree : {2U, 3U, 4U, 7U, 50U}) {
    const Fnomial tree(50, degree, 13);
    for (std::uint32_t node = 0; node < 50; ++node) {
      const std::vector<Fnomial::Child> children = tree.children(node);
      for (std::uint32_t i = 0; i < children.size(); ++i) {
        EXPECT_EQ(tree.slot(children[i].node), i);
        EXPECT_EQ(tree.parent(children[i].node), node);
        EXPECT_EQ(tree.subtree(children[i].node), children[i].subtree);
        EXPECT_EQ(tree.depth(children[i].node), tree.depth(node) + 1);
      }
    }
  }
}

TEST(FnomialTree, of_another_root_is_the_same_shifted) {
  const Fnomial at_0(31, 4);
  const Fnomial at_29(31, 4, 29);
  EXPECT_EQ(at_29.parent(29), std::nullopt);
  for (std::uint32_t position = 0; position < 31; ++position) {
    const std::uint32_t node = (position + 29) % 31;
    if (const auto parent = at_0.parent(position)) {
      EXPECT_EQ(at_29.parent(node), (*parent + 29) % 31);
    }
    EXPECT_EQ(at_29.slot(node), at_0.slot(position));
    EXPECT_EQ(at_29.depth(node), at_0.depth(position));
  }
}

TEST(FnomialTree, counts_each_node_in_one_subtree_of_the_root) {
  for (std::uint32_t nodes = 1; nodes <= 100; ++nodes) {
    const Fnomial tree(nodes, 3);
    std::uint32_t counted = 1;
    for (const Fnomial::Child& child : tree.children(0)) counted += child.subtree;
    EXPECT_EQ(counted, nodes);
    EXPECT_EQ(tree.subtree(0), nodes);
  }
}

TEST(FnomialTree, of_a_degree_of_all_nodes_and_more_hangs_all_on_the_root) {
  for (std::uint32_t degree : {100U, 4'000'000'000U}) {
    const Fnomial tree(100, degree);
    EXPECT_EQ(tree.children(0).size(), 99U);
    EXPECT_EQ(tree.depth(99), 1U);
    EXPECT_TRUE(tree.children(99).empty());
  }
}

// 65536 * 65536 is more than 32 bits hold.
TEST(FnomialTree, has_strides_that_pass_the_largest_number_of_nodes) {
  const Fnomial tree(4'294'967'295U, 65536);
  EXPECT_EQ(tree.parent(4'294'901'760U), 0U);
  EXPECT_EQ(tree.parent(4'294'901'761U), 4'294'901'760U);
  EXPECT_EQ(tree.subtree(4'294'901'760U), 65535U);
  EXPECT_EQ(tree.depth(4'294'967'294U), 2U);
  EXPECT_EQ(tree.children(4'294'901'760U).size(), 65534U);
  EXPECT_EQ(tree.children(0).size(), 65535U + 65535U);
  // 42950 * 100000 is more as well.
  EXPECT_EQ(Fnomial(4'294'967'295U, 100'000).children(0).size(), 99'999U + 42'949U);
}

}  // namespace
}  // namespace farsum::trees
