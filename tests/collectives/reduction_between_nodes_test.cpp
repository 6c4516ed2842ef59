// Nodes that combine what they have, each with one rank, which has done nothing for it on its node.
#include "collectives/reduction_between_nodes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "collectives/reduction_refusals.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

using Kind = GroupReduction::Kind;
using Finding = NodeRoundsBlock::Finding;

// One that combines, with what it combines in.
struct NodeOfTest {
  ReductionBetweenNodes& nodes;
  NodeRounds& rounds;
  std::uint32_t rank;

  void have(std::uint64_t word) const { std::memcpy(rounds.answer(), &word, sizeof word); }
  std::uint64_t has() const {
    std::uint64_t word = 0;
    std::memcpy(&word, rounds.answer(), sizeof word);
    return word;
  }
};

class NodesOfTest {
 public:
  NodesOfTest(std::uint32_t nodes, std::uint32_t degree, std::uint32_t splits = 0)
      : node_of_(nodes), degree_(degree), splits_(splits) {
    std::iota(node_of_.begin(), node_of_.end(), 0u);
  }
  void run(const std::function<void(const NodeOfTest&)>& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < node_of_.size(); ++rank) threads.emplace_back([&, rank] { be(rank, body); });
    for (std::thread& thread : threads) thread.join();
  }
  std::size_t letters() const { return boxes_.sent(); }

 private:
  void be(std::uint32_t rank, const std::function<void(const NodeOfTest&)>& body) {
    std::vector<std::uint64_t> words(GroupBlock::footprint(1) / 8 + 32);
    auto* const block =
        reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(words.data()), 2 * cache_line_bytes));
    SleepingWaiter waiter;
    Post post(boxes_, rank, waiter);
    GroupTeam team(places_of(node_of_, rank), rank, &post, waiter);
    team.begin(*reinterpret_cast<NodeTeamBlock*>(block), 7);
    NodeRounds rounds(block + GroupBlock::rounds_at(1), team.node(), waiter);
    ReductionBetweenNodes nodes({.team = team,
                                 .my_rank = rank,
                                 .degree = degree_,
                                 .letter_bytes = 4096,
                                 .piece_bytes = 1024,
                                 .splits = splits_,
                                 .rule = nullptr,
                                 .by_rank = nullptr});
    nodes.begin(rounds);
    body({nodes, rounds, rank});
  }

  std::vector<std::uint32_t> node_of_;
  std::uint32_t degree_;
  std::uint32_t splits_;
  Mailboxes boxes_;
};

class SumOfTest {
 public:
  explicit SumOfTest(Kind kind, std::uint32_t root = 0, std::uint64_t count = 1)
      : asked_{.kind = kind, .type = ops::ElementType::uint64, .op = ops::Operator::sum, .root = root, .count = count},
        call_{.asked = asked_,
              .fold = Fold(ops::kernels_for_this_machine(), asked_.type, asked_.op),
              .said = said_of(asked_, ReduceOrder::nodes),
              .doing = "sum",
              .gets_result = true,
              .result_bytes = count * sizeof(std::uint64_t),
              .bytes = count * sizeof(std::uint64_t),
              .own_from = 0} {}
  const ReductionCall& call() const { return call_; }

 private:
  GroupReduction asked_;
  ReductionCall call_;
};

class BetweenNodes : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(degree, BetweenNodes, testing::Values(0U, 2U, 3U),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(BetweenNodes, what_each_has_becomes_that_of_all_piece_by_piece) {
  NodesOfTest(5, GetParam()).run([](const NodeOfTest& node) {
    const SumOfTest sum(Kind::allreduce, 0, 3);
    for (std::size_t done = 0; done < 24; done += 8) {
      node.have(node.rank + done);
      ASSERT_TRUE(node.nodes.combine_for_all(sum.call(), {.done = done, .bytes = 8}).is_ok());
      EXPECT_EQ(node.has(), 10 + 5 * done);
    }
    EXPECT_EQ(node.rounds.verdict().finding, Finding::the_same);
  });
}

TEST_P(BetweenNodes, all_hear_that_one_has_called_another_and_agree_on_the_next) {
  NodesOfTest(5, GetParam()).run([](const NodeOfTest& node) {
    const SumOfTest sum(Kind::allreduce), longer(Kind::allreduce, 0, 2);
    const SumOfTest& mine = node.rank == 3 ? longer : sum;
    ASSERT_TRUE(node.nodes.combine_for_all(mine.call(), {.done = 0, .bytes = 8}).is_ok());
    EXPECT_EQ(std::exchange(node.rounds.verdict(), {}).finding, Finding::another_reduction);
    node.have(node.rank);
    ASSERT_TRUE(node.nodes.combine_for_all(sum.call(), {.done = 0, .bytes = 8}).is_ok());
    EXPECT_EQ(node.has(), 10u);
  });
}

TEST_P(BetweenNodes, any_root_gets_the_first_piece_and_those_that_follow) {
  for (const bool all_wait : {false, true}) {
    NodesOfTest(5, GetParam()).run([&](const NodeOfTest& node) {
      for (std::uint32_t root = 0; root < 5; ++root) {
        const SumOfTest sum(Kind::reduce, root, 2);
        ReductionBetweenNodes::Verdict verdict{{}, 0, Finding::the_same};
        node.have(node.rank);
        ASSERT_TRUE(node.nodes.combine_first_at_root(sum.call(), {.bytes = 8, .all_wait = all_wait}, verdict).is_ok());
        EXPECT_EQ(verdict.finding, Finding::the_same);
        if (node.rank == root) {
          EXPECT_EQ(node.has(), 10u);
        }
        node.have(node.rank + 1);
        ASSERT_TRUE(node.nodes.add_at_root(sum.call(), 8).is_ok());
        if (node.rank == root) {
          EXPECT_EQ(node.has(), 15u);
        }
      }
    });
  }
}

TEST_P(BetweenNodes, a_piece_goes_by_halves_where_a_reduce_is_split) {
  NodesOfTest(4, GetParam(), 1).run([](const NodeOfTest& node) {
    const SumOfTest sum(Kind::reduce, 2);
    ReductionBetweenNodes::Verdict verdict{{}, 0, Finding::the_same};
    node.have(node.rank);
    ASSERT_TRUE(node.nodes.combine_first_at_root(sum.call(), {.bytes = 8, .all_wait = true}, verdict).is_ok());
    if (node.rank == 2) {
      EXPECT_EQ(node.has(), 6u);
    }
  });
}

TEST_P(BetweenNodes, one_that_ends_tells_those_that_would_wait_for_it) {
  NodesOfTest(5, GetParam()).run([](const NodeOfTest& node) {
    const SumOfTest sum(Kind::allreduce);
    if (node.rank == 4) return node.nodes.tell_of_the_end(sum.call());
    ASSERT_TRUE(node.nodes.combine_for_all(sum.call(), {.done = 0, .bytes = 8}).is_ok());
    EXPECT_EQ(node.rounds.verdict().finding, Finding::no_reduction);
    EXPECT_EQ(node.rounds.verdict().rank, 4u);
  });
}

}  // namespace
}  // namespace farsum
