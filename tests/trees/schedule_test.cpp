// All lists of a shape together, over values that say what is in them.
#include "trees/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "symbolic_cluster.hpp"
#include "trees/walk.hpp"

namespace farsum::trees {
namespace {

std::string description(const Shape& shape) {
  return "kind " + std::to_string(static_cast<int>(shape.kind)) + ", " + std::to_string(shape.nodes) + " nodes, root " +
         std::to_string(shape.root) + ", " + std::to_string(shape.elements) + " elements, degree " +
         std::to_string(shape.degree) + ", " + std::to_string(shape.splits) + " splits";
}

std::string complaint(const Shape& shape) { return SymbolicCluster(shape, {}).run(); }

std::string answer(const Shape& shape, std::uint64_t element = 0) {
  SymbolicCluster cluster(shape, {.texts = true});
  EXPECT_EQ(cluster.run(), "");
  return cluster.text(normalised(shape).root, element);
}

std::vector<std::uint32_t> degrees(std::uint32_t nodes) { return {2, 3, 4, 5, 6, 7, 8, std::max(nodes, 9U)}; }

// In make test-all: every tree of 1 to 70 nodes.
TEST(Reduce, counts_each_node_once_at_its_root) {
  for (std::uint32_t nodes = 1; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : degrees(nodes)) {
      for (std::uint32_t splits = 0; splits <= 5 && 1U << splits <= nodes; ++splits) {
        const Shape shape{Kind::reduce, nodes, 0, (1U << splits) + 1, degree, splits};
        ASSERT_EQ(complaint(shape), "") << description(shape);
      }
    }
  }
}

TEST(Reduce, counts_each_node_once_at_any_root) {
  for (const std::uint32_t nodes : {2U, 3U, 6U, 7U, 13U, 16U, 23U, 31U}) {
    for (std::uint32_t root = 0; root < nodes; ++root) {
      for (const std::uint32_t degree : {2U, 3U, nodes}) {
        for (std::uint32_t splits = 0; splits <= 4; ++splits) {
          const Shape shape{Kind::reduce, nodes, root, 17, degree, splits};
          ASSERT_EQ(complaint(shape), "") << description(shape);
        }
      }
    }
  }
}

// All but the sides of the operands, which are by number and not by position.
TEST(Reduce, to_another_root_has_the_lists_of_root_0_shifted) {
  for (std::uint32_t nodes = 2; nodes <= 70; nodes += 3) {
    for (const std::uint32_t root : {1U, nodes / 2, nodes - 1}) {
      for (const std::uint32_t splits : {0U, 1U, 3U, 5U}) {
        const Shape at_0{Kind::reduce, nodes, 0, 40, 3, splits};
        Shape shifted = at_0;
        shifted.root = root;
        for (std::uint32_t node = 0; node < nodes; ++node) {
          std::vector<Step> expected = steps_of(at_0, node);
          std::vector<Step> steps = steps_of(shifted, (node + root) % nodes);
          for (Step& step : expected) step.peer = (step.peer + root) % nodes;
          for (std::size_t i = 0; i < steps.size() && i < expected.size(); ++i) {
            expected[i].mine_left = steps[i].mine_left;
          }
          ASSERT_EQ(steps, expected) << description(shifted) << ", node " << node;
        }
      }
    }
  }
}

TEST(Reduce, combines_in_an_order_that_can_be_read_off_the_tree) {
  EXPECT_EQ(answer({Kind::reduce, 4, 0, 1, 2}), "((0 1) (2 3))");
  EXPECT_EQ(answer({Kind::reduce, 4, 0, 1, 4}), "(((0 1) 2) 3)");
  // The subtree of 6 has two nodes and is there before that of 3, which has three.
  EXPECT_EQ(answer({Kind::reduce, 8, 0, 1, 3}), "((((0 1) 2) (6 7)) ((3 4) 5))");
  // As docs/REDUCTIONS.md has it.
  EXPECT_EQ(answer({Kind::allreduce, 13, 0, 1, 2}), "((((0 1) (2 3)) ((4 5) (6 7))) (((8 9) 12) (10 11)))");
  // The same tree with its root at 5: who has the smaller first node is on the left.
  EXPECT_EQ(answer({Kind::reduce, 8, 5, 1, 3}), "(((0 1) 2) ((3 4) ((5 6) 7)))");
}

TEST(Reduce, with_a_split_gives_the_node_left_over_a_partner_in_the_other_half) {
  const Shape shape{Kind::reduce, 3, 0, 2, 2, 1};
  EXPECT_EQ(answer(shape, 0), "((0 2) 1)");
  EXPECT_EQ(answer(shape, 1), "((0 2) 1)");
  // Node 1 keeps its first element, which node 0 gets, and has sent the other to 2.
  const std::vector<Step> expected = {{Action::send, false, 2, 1, 1}, {Action::send, false, 0, 0, 1}};
  EXPECT_EQ(steps_of(shape, 1), expected);
}

TEST(Reduce, splits_an_odd_vector_into_a_longer_and_a_shorter_half) {
  const std::vector<Step> expected = {
      {Action::send, false, 1, 2, 1}, {Action::receive_combine, true, 1, 0, 2}, {Action::receive_copy, false, 1, 2, 1}};
  EXPECT_EQ(steps_of({Kind::reduce, 2, 0, 3, 2, 1}, 0), expected);
}

// They are all steps, and where a node sends another two letters these are of two stages.
TEST(Reduce, has_stages_in_which_no_node_sends_another_two_letters) {
  for (const std::uint32_t nodes : {2U, 3U, 8U, 13U, 64U}) {
    for (const std::uint32_t splits : {0U, 1U, 3U}) {
      const Shape shape{.kind = Kind::reduce, .nodes = nodes, .elements = 16, .degree = 3, .splits = splits};
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const std::vector<std::vector<Step>> stages = stages_of_reduce(shape, node);
        EXPECT_EQ(stages.size(), normalised(shape).splits + 2);
        std::vector<Step> all;
        for (const std::vector<Step>& stage : stages) {
          std::set<std::uint32_t> told, heard;
          for (const Step& step : stage)
            EXPECT_TRUE((step.action == Action::send ? told : heard).insert(step.peer).second);
          all.insert(all.end(), stage.begin(), stage.end());
        }
        EXPECT_EQ(all, steps_of(shape, node));
      }
    }
  }
}

TEST(Broadcast, brings_the_roots_elements_to_all) {
  for (std::uint32_t nodes = 1; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : degrees(nodes)) {
      for (const std::uint32_t root : {0U, nodes / 2, nodes - 1}) {
        const Shape shape{Kind::broadcast, nodes, root, 3, degree};
        ASSERT_EQ(complaint(shape), "") << description(shape);
      }
    }
  }
}

TEST(Broadcast, serves_the_largest_subtree_first) {
  const std::vector<Step> expected = {{Action::send, false, 3, 0, 1},
                                      {Action::send, false, 6, 0, 1},
                                      {Action::send, false, 1, 0, 1},
                                      {Action::send, false, 2, 0, 1}};
  EXPECT_EQ(steps_of({Kind::broadcast, 8, 0, 1, 3}, 0), expected);
}

TEST(Allreduce, gives_all_nodes_one_answer) {
  for (std::uint32_t nodes = 1; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : {2U, 3U, 8U, std::max(nodes, 2U)}) {
      for (const std::uint32_t splits : {0U, 1U, 4U}) {
        const Shape shape{Kind::allreduce, nodes, 0, 17, degree, splits, degree == 2 ? 5U : 0U};
        ASSERT_EQ(complaint(shape), "") << description(shape);
      }
    }
  }
}

TEST(Allreduce, is_the_reduce_to_node_0_and_a_broadcast_of_its_own_degree) {
  const Shape shape{Kind::allreduce, 31, 7, 8, 4, 2, 2};
  for (std::uint32_t node = 0; node < 31; ++node) {
    std::vector<Step> expected = steps_of({Kind::reduce, 31, 0, 8, 4, 2}, node);
    const std::vector<Step> broadcast = steps_of({Kind::broadcast, 31, 0, 8, 2}, node);
    expected.insert(expected.end(), broadcast.begin(), broadcast.end());
    EXPECT_EQ(steps_of(shape, node), expected);
  }
}

// In make test-all: every barrier of 1 to 130 nodes.
TEST(Barrier, lets_nobody_through_before_all_have_come) {
  for (std::uint32_t nodes = 1; nodes <= 130; ++nodes) {
    for (const std::uint32_t degree : degrees(nodes)) {
      const Shape shape{.kind = Kind::barrier, .nodes = nodes, .degree = degree};
      ASSERT_EQ(complaint(shape), "") << description(shape);
    }
  }
}

TEST(Barrier, of_a_degree_of_all_nodes_has_each_tell_each_other_at_once) {
  const std::vector<Step> expected = {{Action::send, false, 0, 0, 0},
                                      {Action::send, false, 2, 0, 0},
                                      {Action::receive_copy, false, 2, 0, 0},
                                      {Action::receive_copy, false, 0, 0, 0}};
  EXPECT_EQ(steps_of({.kind = Kind::barrier, .nodes = 3, .degree = 3}, 1), expected);
}

TEST(Allgather, brings_the_block_of_each_node_to_all) {
  for (std::uint32_t nodes = 1; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : degrees(nodes)) {
      const Shape shape{.kind = Kind::allgather, .nodes = nodes, .degree = degree};
      ASSERT_EQ(complaint(shape), "") << description(shape);
    }
  }
}

TEST(Allgather, sends_all_that_it_has_until_only_a_part_is_missing) {
  const std::vector<Step> expected = {{Action::send, false, 3, 4, 1}, {Action::receive_copy, false, 0, 0, 1},
                                      {Action::send, false, 2, 4, 2}, {Action::receive_copy, false, 1, 1, 2},
                                      {Action::send, false, 0, 4, 1}, {Action::receive_copy, false, 3, 3, 1}};
  EXPECT_EQ(steps_of({.kind = Kind::allgather, .nodes = 5}, 4), expected);
}

TEST(Allgather, brings_each_block_to_a_node_once) {
  for (std::uint32_t nodes = 2; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : degrees(nodes)) {
      std::uint64_t sent = 0, received = 0;
      for (const Step& step : steps_of({.kind = Kind::allgather, .nodes = nodes, .degree = degree}, nodes / 2))
        (step.action == Action::send ? sent : received) += step.count;
      ASSERT_EQ(sent, nodes - 1) << nodes << " nodes, degree " << degree;
      ASSERT_EQ(received, nodes - 1) << nodes << " nodes, degree " << degree;
    }
  }
}

TEST(Lists, are_empty_of_one_node_and_of_no_elements) {
  for (const Kind kind : {Kind::reduce, Kind::broadcast, Kind::allreduce}) {
    EXPECT_TRUE(steps_of({kind, 1, 0, 8, 4, 2}, 0).empty());
    for (std::uint32_t node = 0; node < 5; ++node) EXPECT_TRUE(steps_of({kind, 5, 0, 0, 4, 2}, node).empty());
  }
  EXPECT_TRUE(steps_of({Kind::barrier, 1}, 0).empty());
  EXPECT_TRUE(steps_of({Kind::allgather, 1}, 0).empty());
}

// Letters that nodes send while they walk their lists to the end.
class CountingCluster final : public Carrier {
 public:
  explicit CountingCluster(const Shape& shape) : sent_(shape.nodes), lists_(lists_of(shape)), at_(shape.nodes) {
    for (std::uint32_t node = 0; node < shape.nodes; ++node) ready_.push_back(node);
    std::uint32_t ended = 0;
    while (!ready_.empty()) {
      here_ = ready_.back();
      ready_.pop_back();
      if (at_[here_] == lists_[here_].size()) continue;
      ended += advance(lists_[here_], at_[here_], *this) ? 1 : 0;
    }
    const auto idle = std::count_if(lists_.begin(), lists_.end(), [](const auto& list) { return list.empty(); });
    EXPECT_EQ(ended + idle, shape.nodes);
  }

  const std::vector<std::uint64_t>& sent() const { return sent_; }

  bool take(const Step& step) override {
    std::uint32_t& letters = letters_[{step.peer, here_}];
    if (letters == 0) return false;
    --letters;
    return true;
  }
  bool send(const Step& step) override {
    ++letters_[{here_, step.peer}];
    ++sent_[here_];
    ready_.push_back(step.peer);
    return true;
  }

 private:
  std::vector<std::uint64_t> sent_;  // by node
  Lists lists_;
  std::vector<std::size_t> at_;
  std::vector<std::uint32_t> ready_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> letters_;
  std::uint32_t here_ = 0;
};

std::vector<std::uint64_t> letters(const Shape& shape) { return CountingCluster(shape).sent(); }

std::uint64_t letters_of_all(const Shape& shape) {
  const std::vector<std::uint64_t> sent = letters(shape);
  return std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
}

class MessageCounts : public testing::TestWithParam<std::uint32_t> {
 protected:
  const std::uint32_t nodes_ = GetParam();
  // What each of all nodes sends, where one of them sends less.
  std::vector<std::uint64_t> all_but(std::uint32_t root, std::uint64_t sent, std::uint64_t sent_by_root) const {
    std::vector<std::uint64_t> expected(nodes_, sent);
    expected[root] = sent_by_root;
    return expected;
  }
};
INSTANTIATE_TEST_SUITE_P(of, MessageCounts, testing::Values(2U, 3U, 8U, 64U, 1000U),
                         [](const auto& test) { return std::to_string(test.param) + "_nodes"; });

TEST_P(MessageCounts, of_a_reduce_are_one_a_node_but_the_root) {
  EXPECT_EQ(letters({Kind::reduce, nodes_, 1, 1, 4}), all_but(1, 1, 0));
}

TEST_P(MessageCounts, of_a_split_reduce_are_one_more_a_node_and_split) {
  const Shape shape = normalised({Kind::reduce, nodes_, 0, 8, 4, 3});
  EXPECT_EQ(shape.splits, nodes_ < 4 ? 1U : 3U);
  EXPECT_EQ(letters(shape), all_but(0, shape.splits + 1, shape.splits));
}

TEST_P(MessageCounts, of_a_broadcast_are_one_a_node_but_the_root) {
  EXPECT_EQ(letters_of_all({Kind::broadcast, nodes_, 1, 1, 4}), nodes_ - 1);
}

TEST_P(MessageCounts, of_an_allreduce_are_two_a_node_but_the_root) {
  EXPECT_EQ(letters_of_all({Kind::allreduce, nodes_, 0, 1, 4}), 2 * (nodes_ - 1));
}

TEST_P(MessageCounts, of_a_barrier_and_an_allgather_are_the_logarithm_a_node) {
  const auto rounds = static_cast<std::uint64_t>(std::bit_width(nodes_ - 1));
  for (const Kind kind : {Kind::barrier, Kind::allgather}) {
    EXPECT_EQ(letters({kind, nodes_}), std::vector<std::uint64_t>(nodes_, rounds));
  }
}

TEST_P(MessageCounts, of_a_flat_barrier_and_allgather_are_one_to_each_other_node) {
  for (const Kind kind : {Kind::barrier, Kind::allgather}) {
    const std::vector<Step> steps = steps_of({.kind = kind, .nodes = nodes_, .degree = nodes_}, nodes_ - 1);
    const auto sends = [](const Step& step) { return step.action == Action::send; };
    EXPECT_EQ(std::count_if(steps.begin(), steps.end(), sends), nodes_ - 1);
  }
}

}  // namespace
}  // namespace farsum::trees
