// Reduces over nodes that halve the vector and the nodes first.
#include "collectives/split_reduce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "collectives/reductions.hpp"
#include "group_of_threads.hpp"

namespace farsum {
namespace {

using Kind = GroupReduction::Kind;

// One rank on each but on the last, which has two.
Nodes nodes_and_one_rank_more(std::uint32_t nodes) {
  Nodes node_of(nodes + 1);
  std::iota(node_of.begin(), node_of.end(), 0u);
  node_of.back() = nodes - 1;
  return node_of;
}

std::vector<std::uint64_t> words_of(std::uint32_t rank, std::size_t count) {
  std::vector<std::uint64_t> brought(count);
  for (std::size_t i = 0; i < count; ++i) brought[i] = (i + 1) * (rank + 3) + i % 5;
  return brought;
}

struct SplitWish {
  std::uint32_t root;
  std::size_t count;
};

GroupReduction split_sum_to(const SplitWish& asked, std::vector<std::uint64_t>& mine,
                            std::vector<std::uint64_t>& result) {
  return {.kind = Kind::reduce,
          .type = ops::ElementType::uint64,
          .op = ops::Operator::sum,
          .root = asked.root,
          .count = asked.count,
          .mine = reinterpret_cast<const std::byte*>(mine.data()),
          .result = reinterpret_cast<std::byte*>(result.data())};
}

void split_and_compare(Member member, std::uint32_t ranks, const SplitWish& asked) {
  std::vector<std::uint64_t> mine = words_of(member.rank, asked.count), result(asked.count);
  const Status status = member.run(split_sum_to(asked, mine, result));
  ASSERT_TRUE(status.is_ok()) << status.text();
  if (member.rank != asked.root) return;
  std::vector<std::uint64_t> expected(asked.count);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<std::uint64_t> brought = words_of(rank, asked.count);
    for (std::size_t i = 0; i < asked.count; ++i) expected[i] += brought[i];
  }
  ASSERT_EQ(result, expected) << asked.count << " to " << asked.root;
}

class SplitReduces : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(Nodes, SplitReduces,
                         testing::Combine(testing::Values(2U, 3U, 5U, 8U, 13U, 17U), testing::Values(1U, 2U, 16U)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_splits_" +
                                  std::to_string(std::get<1>(test.param));
                         });

// Fewer elements than parts, as many, and several pieces, again and again.
TEST_P(SplitReduces, give_the_sum_to_any_root) {
  const auto [nodes, splits] = GetParam();
  const auto ranks = nodes + 1;
  GroupOfThreads(nodes_and_one_rank_more(nodes), false, {.letter_bytes = 1024, .splits = splits})
      .run([&, nodes = nodes](Member member) {
        for (const std::uint32_t root : {0U, 1U, nodes - 1, nodes}) {
          for (const std::size_t count : {0U, 1U, 2U, 7U, 100U, 1000U}) split_and_compare(member, ranks, {root, count});
        }
      });
}

TEST_P(SplitReduces, of_different_lengths_are_told_to_all_and_harm_no_other_call) {
  const auto [nodes, splits] = GetParam();
  const auto ranks = nodes + 1;
  GroupOfThreads(nodes_and_one_rank_more(nodes), false, {.splits = splits}).run([&](Member member) {
    for (std::uint32_t odd_one = 0; odd_one < ranks; ++odd_one) {
      std::vector<std::uint64_t> mine(20, 1), result(20, 77);
      const Status status = member.run(split_sum_to({0, member.rank == odd_one ? 20U : 10U}, mine, result));
      ASSERT_EQ(status.code(), Code::argument);
      ASSERT_EQ(result, std::vector<std::uint64_t>(20, 77));
      split_and_compare(member, ranks, {odd_one, 30});
    }
  });
}

// Behind the round in which all agree, each of 8 nodes sends and takes half of what it has, thrice, and all but the
// first then send what they have left: in place of whole vectors, of which one a node.
TEST(SplitReduce, sends_halves_of_halves) {
  constexpr std::uint32_t nodes = 8;
  Nodes node_of(nodes);
  std::iota(node_of.begin(), node_of.end(), 0u);
  const auto letters = [&](std::uint32_t splits) {
    GroupOfThreads group(node_of, false, {.degree = 2, .splits = splits});
    group.run([&](Member member) { split_and_compare(member, nodes, {0, 64}); });
    return group.letters();
  };
  constexpr std::size_t to_agree = 2 * (nodes - 1);
  EXPECT_EQ(letters(0), nodes - 1);
  EXPECT_EQ(letters(3), to_agree + 3 * nodes + nodes - 1);
}

}  // namespace
}  // namespace farsum
