// Long vectors over several nodes, whose further pieces go in trees of their own: who sends how much, and that the bits
// are those of these trees.
#include "collectives/reductions.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cost/tree_rule.hpp"
#include "dear_sums.hpp"
#include "group_of_threads.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

using Kind = GroupReduction::Kind;

constexpr std::size_t letter_bytes = 1024;
constexpr std::uint64_t pieces = 4;

Nodes one_rank_each(std::uint32_t nodes) {
  Nodes node_of(nodes);
  std::iota(node_of.begin(), node_of.end(), 0u);
  return node_of;
}

// How many elements go in a piece, of which two nodes tell each other in two letters.
std::uint64_t elements_of_a_piece() {
  std::uint64_t elements = 1;
  const auto letters = [](std::uint64_t count) {
    GroupOfThreads group({0, 1}, false, {.letter_bytes = letter_bytes});
    group.run([&](Member member) {
      const std::vector<double> mine(count, 1);
      std::vector<double> result(count);
      ASSERT_TRUE(member
                      .run({.kind = Kind::allreduce,
                            .type = ops::ElementType::float64,
                            .op = ops::Operator::sum,
                            .count = count,
                            .mine = reinterpret_cast<const std::byte*>(mine.data()),
                            .result = reinterpret_cast<std::byte*>(result.data())})
                      .is_ok());
    });
    return group.letters();
  };
  while (letters(elements + 1) == 2) ++elements;
  return elements;
}

// Of numbers that lose other parts of themselves when they are added in another order: as the first rank has it.
std::vector<double> sum_over(std::uint32_t nodes, std::uint64_t count, ops::Operator op,
                             const GroupOfThreads::Means& means, std::size_t* letters = nullptr,
                             std::size_t* letters_of_first = nullptr) {
  std::vector<double> of_first(count);
  GroupOfThreads group(one_rank_each(nodes), false, means);
  group.run([&](Member member) {
    std::vector<double> mine(count);
    for (std::uint64_t i = 0; i < count; ++i)
      mine[i] = (member.rank % 3 == 0 ? 1e16 : 1.0) * (member.rank % 2 == 0 ? 1 : -1) + static_cast<double>(i % 7);
    std::vector<double> result(count);
    ASSERT_TRUE(member
                    .run({.kind = Kind::allreduce,
                          .type = ops::ElementType::float64,
                          .op = op,
                          .count = count,
                          .mine = reinterpret_cast<const std::byte*>(mine.data()),
                          .result = reinterpret_cast<std::byte*>(result.data())})
                    .is_ok());
    if (member.rank == 0) of_first = result;
  });
  if (letters != nullptr) *letters = group.letters();
  if (letters_of_first != nullptr) *letters_of_first = group.letters_of(0);
  return of_first;
}

TEST(PiecesOfReductions, take_the_tree_that_the_table_has_for_operator_and_type_behind_the_first) {
  const cost::TreeRule rule = dear_sums();
  const std::uint64_t count = pieces * elements_of_a_piece();
  const GroupOfThreads::Means means{.letter_bytes = letter_bytes, .pieces = &rule};
  constexpr std::uint32_t nodes = 5;
  std::size_t letters = 0;
  sum_over(nodes, count, ops::Operator::sum, means, &letters);
  EXPECT_EQ(letters, nodes * (nodes - 1) + (pieces - 1) * 2 * (nodes - 1));
  sum_over(nodes, count, ops::Operator::max, means, &letters);
  EXPECT_EQ(letters, pieces * nodes * (nodes - 1)) << "nothing is known to be dear in it";
}

TEST(PiecesOfReductions, of_many_nodes_go_in_another_tree_than_the_first) {
  const cost::TreeRule rule = dear_sums();
  const std::uint64_t count = pieces * elements_of_a_piece();
  constexpr std::uint32_t nodes = 31;
  std::size_t letters_of_first = 0;
  sum_over(nodes, count, ops::Operator::sum, {.letter_bytes = letter_bytes, .degree = 4, .pieces = &rule}, nullptr,
           &letters_of_first);
  const auto children = [](std::uint32_t degree) { return trees::Fnomial(nodes, degree).children(0).size(); };
  EXPECT_EQ(letters_of_first, children(4) + (pieces - 1) * children(2));
}

TEST(PiecesOfReductions, have_the_bits_of_their_trees) {
  const cost::TreeRule rule = dear_sums();
  const std::uint64_t each = elements_of_a_piece();
  const std::uint64_t count = pieces * each - 1;
  for (const std::uint32_t nodes : {5U, 31U}) {
    const std::uint32_t first = nodes == 5 ? 0 : 4;
    const auto found =
        sum_over(nodes, count, ops::Operator::sum, {.letter_bytes = letter_bytes, .degree = first, .pieces = &rule});
    const auto by_first = sum_over(nodes, count, ops::Operator::sum, {.letter_bytes = letter_bytes, .degree = first});
    const auto by_two = sum_over(nodes, count, ops::Operator::sum, {.letter_bytes = letter_bytes, .degree = 2});
    EXPECT_NE(by_first, by_two) << "no order is told from another";
    for (std::uint64_t i = 0; i < count; ++i)
      ASSERT_EQ(found[i], i < each ? by_first[i] : by_two[i]) << nodes << " nodes, element " << i;
  }
}

// In a tree that depends on the call, each would wait for letters that the other sends to nobody.
TEST(PiecesOfReductions, are_not_begun_where_ranks_have_called_what_takes_different_trees) {
  const cost::TreeRule rule = dear_sums();
  const std::uint64_t count = pieces * elements_of_a_piece();
  GroupOfThreads group(one_rank_each(5), false, {.letter_bytes = letter_bytes, .pieces = &rule});
  group.run([&](Member member) {
    for (const bool differ : {true, false}) {
      const std::vector<double> mine(count, 1);
      std::vector<double> result(count);
      const ops::Operator op = differ && member.rank % 2 == 0 ? ops::Operator::max : ops::Operator::sum;
      const Status status = member.run({.kind = Kind::allreduce,
                                        .type = ops::ElementType::float64,
                                        .op = op,
                                        .count = count,
                                        .mine = reinterpret_cast<const std::byte*>(mine.data()),
                                        .result = reinterpret_cast<std::byte*>(result.data())});
      EXPECT_EQ(status.is_ok(), !differ) << status.text();
      EXPECT_EQ(result.back(), differ ? 0 : 5);
    }
  });
}

TEST(PiecesOfReductions, take_one_tree_in_the_order_of_ranks) {
  const cost::TreeRule rule = dear_sums();
  const std::uint64_t count = pieces * elements_of_a_piece();
  const auto by_ranks = [](std::uint32_t) { return ReduceOrder::ranks; };
  const auto with =
      sum_over(5, count, ops::Operator::sum, {.order = by_ranks, .letter_bytes = letter_bytes, .pieces = &rule});
  EXPECT_EQ(with, sum_over(5, count, ops::Operator::sum, {.order = by_ranks, .letter_bytes = letter_bytes}));
}

}  // namespace
}  // namespace farsum
