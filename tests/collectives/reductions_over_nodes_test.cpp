// Reductions over nodes: who waits for whom, who tells whom, and in how many letters.
#include "collectives/reductions_over_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "group_of_threads.hpp"
#include "sums_of_one.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

// All meet before each ninth call.
TEST(Reductions, let_a_leaf_of_another_node_return_before_its_root_has_begun) {
  for (const std::uint32_t degree : {0U, 2U})
    expect_lead(GroupOfThreads({0, 1}, false, {.degree = degree}),
                {.calls = 8'000, .each = 800, .phase = 2, .least = 6, .most = 9});
}

// Neither leaves anything for the other.
TEST(Reductions, tell_two_ranks_that_both_take_themselves_for_the_root) {
  for (const std::uint32_t nodes : {2U, 3U, 15U}) {
    Nodes node_of(nodes);
    std::iota(node_of.begin(), node_of.end(), 0u);
    GroupOfThreads(node_of).run([&](Member member) {
      const std::uint64_t mine = 5;
      std::uint64_t result = 77;
      for (const std::uint32_t first_root : {0U, (nodes - 1) / 2}) {
        const std::uint32_t second_root = nodes - 1;
        const bool is_root = member.rank == first_root || member.rank == second_root;
        const std::uint32_t root = member.rank > first_root ? second_root : first_root;
        const Status status = member.run(one_sum_to(root, mine, result));
        EXPECT_TRUE(!is_root || status.code() == Code::argument) << member.rank << " of " << nodes;
        EXPECT_EQ(result, 77);
        ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
        EXPECT_EQ(std::exchange(result, 77), 5 * nodes);
      }
    });
  }
}

// A barrier's letter is empty, and an allgather's begins with another word.
TEST(Reductions, see_that_another_node_makes_another_call) {
  for (const bool is_barrier : {true, false}) {
    GroupOfThreads({0, 0, 1}, is_barrier).run([&](Member member) {
      const std::uint64_t mine = ~std::uint64_t{0};
      std::uint64_t result = 77;
      if (member.rank != 2) {
        const Status status = member.run(one_sum(mine, result));
        EXPECT_EQ(status.code(), Code::argument);
        EXPECT_THAT(status.text(), HasSubstr("the node of rank 2 made a call that is no reduction"));
        EXPECT_EQ(result, 77);
        EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
      } else if (is_barrier) {
        EXPECT_EQ(member.team.barrier("barrier").code(), Code::argument);
      } else {
        const std::vector<std::byte> ones(100, std::byte{0xff});
        std::vector<std::byte> all(300);
        (void)member.team.allgather(ones, all, "allgather");
      }
    });
  }
}

// The one that does is on a leaf of the tree, and no other node hears of it but by way of others.
TEST(Reductions, between_many_nodes_tell_all_of_them_that_one_makes_another_call) {
  Nodes node_of(15);
  std::iota(node_of.begin(), node_of.end(), 0u);
  node_of.back() = 13;
  GroupOfThreads(node_of, true).run([&](Member member) {
    const std::uint64_t mine = 1;
    std::uint64_t result = 77;
    if (member.rank == 14) {
      EXPECT_FALSE(member.team.barrier("barrier").is_ok());
      return;
    }
    const Status status = member.run(one_sum(mine, result));
    EXPECT_EQ(status.code(), Code::argument);
    const char* const who =
        member.rank == 13 ? "that is no reduction" : "the node of rank 13 made a call that is no red";
    EXPECT_THAT(status.text(), HasSubstr(who));
    EXPECT_EQ(result, 77);
    EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
  });
}

class LettersOfReductions : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(of, LettersOfReductions, testing::Values(2U, 3U, 8U, 12U, 13U, 64U, 1000U),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(LettersOfReductions, are_one_to_each_other_node_where_they_are_few_and_two_a_node_where_they_are_many) {
  const std::uint32_t nodes = GetParam();
  Nodes node_of(nodes);
  std::iota(node_of.begin(), node_of.end(), 0u);
  GroupOfThreads group(node_of);
  group.run([&](Member member) {
    const std::uint64_t mine = member.rank;
    std::uint64_t result = 0;
    ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
    ASSERT_EQ(result, std::uint64_t{nodes} * (nodes - 1) / 2);
  });
  const bool is_flat = nodes <= most_nodes_at_once;
  EXPECT_EQ(group.letters(), is_flat ? nodes * (nodes - 1) : 2 * (nodes - 1));
  for (std::uint32_t rank = 0; rank < nodes; ++rank) {
    EXPECT_LE(group.letters_of(rank), is_flat ? nodes - 1 : std::bit_width(nodes - 1)) << rank;
  }
}

// Few nodes say to all others what they have called; in a tree the root hears from node 0.
TEST(Reductions, to_a_root_are_a_letter_from_each_node_to_its_parent_and_one_to_the_root) {
  for (const std::uint32_t nodes : {2U, 12U, 13U, 64U}) {
    for (const std::uint32_t root : {0U, nodes - 1}) {
      Nodes node_of(nodes);
      std::iota(node_of.begin(), node_of.end(), 0u);
      GroupOfThreads group(node_of);
      group.run([&](Member member) {
        const std::uint64_t mine = member.rank;
        std::uint64_t result = 0;
        ASSERT_TRUE(member.run(one_sum_to(root, mine, result)).is_ok());
        ASSERT_EQ(result, member.rank == root ? std::uint64_t{nodes} * (nodes - 1) / 2 : 0);
      });
      const bool is_flat = nodes <= most_nodes_at_once;
      EXPECT_EQ(group.letters(), is_flat ? nodes * (nodes - 1) : nodes - (root == 0 ? 1 : 0)) << nodes;
    }
  }
}

class ReductionsOfDegree : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(degree, ReductionsOfDegree, testing::Values(2U, 3U, 4U, 8U),
                         [](const auto& test) { return std::to_string(test.param); });

// In a full tree the root has degree - 1 children a phase; it tells those that have told it.
TEST_P(ReductionsOfDegree, go_in_a_tree_of_that_degree_however_many_nodes_there_are) {
  const std::uint32_t degree = GetParam();
  for (const std::uint32_t nodes : {2U, 3U, 8U, 9U, 12U, 13U, 64U}) {
    Nodes node_of(nodes);
    std::iota(node_of.begin(), node_of.end(), 0u);
    GroupOfThreads group(node_of, false, {.degree = degree});
    group.run([&](Member member) {
      const std::uint64_t mine = member.rank;
      std::uint64_t result = 0;
      ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
      ASSERT_EQ(result, std::uint64_t{nodes} * (nodes - 1) / 2);
    });
    EXPECT_EQ(group.letters(), 2 * (nodes - 1)) << nodes;
    EXPECT_EQ(group.letters_of(0), trees::Fnomial(nodes, degree).children(0).size()) << nodes;
  }
}

TEST(Reductions, between_many_nodes_let_none_get_more_than_a_round_ahead) {
  Nodes node_of(19);
  std::iota(node_of.begin(), node_of.end(), 0u);
  GroupOfThreads group(node_of);
  group.run([&](Member member) {
    for (std::uint64_t call = 0; call < 300; ++call) {
      const std::uint64_t mine = member.rank + call;
      std::uint64_t result = 0;
      ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
      ASSERT_EQ(result, 171 + 19 * call);
    }
  });
  EXPECT_LE(group.most_waiting_of_a_sender(), 2);
}

// Whoever has lost the other node tells those that wait for it here, in both forms of rounds and whatever comes next.
TEST(Reductions, fail_on_all_ranks_of_a_node_that_cannot_tell_another) {
  for (const bool is_crowded : {false, true}) {
    GroupOfThreads group({0, 0, 0, 1}, is_crowded);
    group.cut();
    group.run([&](Member member) {
      if (member.rank == 3) return;
      const std::uint64_t mine = 1;
      std::uint64_t result = 77;
      for (int call = 0; call < 3; ++call) {
        EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
      }
      EXPECT_EQ(result, 77);
    });
  }
}

}  // namespace
}  // namespace farsum
