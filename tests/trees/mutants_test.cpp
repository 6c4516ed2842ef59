// Faults put into right lists, each wherever it can be, and seen by the checks that right lists pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "symbolic_cluster.hpp"
#include "trees/schedule.hpp"

namespace farsum::trees {
namespace {

std::vector<Shape> shapes() {
  return {{Kind::reduce, 9, 0, 4, 3},
          {Kind::reduce, 8, 5, 4, 2},
          {Kind::reduce, 7, 2, 4, 2, 2},
          {Kind::reduce, 6, 0, 4, 6}};
}

std::string complaint(const Shape& shape, const Lists& lists) { return SymbolicCluster(shape, {}, lists).run(); }

// Calls `put_in` with a copy of the lists, a node and a step of it, for each step that does `action`.
template <typename PutIn>
std::size_t for_each_step(const Shape& shape, Action action, PutIn put_in) {
  const Lists lists = lists_of(shape);
  std::size_t found = 0;
  for (std::uint32_t node = 0; node < shape.nodes; ++node) {
    for (std::size_t i = 0; i < lists[node].size(); ++i) {
      if (lists[node][i].action != action) continue;
      Lists changed = lists;
      put_in(changed, node, i);
      ++found;
    }
  }
  return found;
}

std::vector<Step>::iterator step_at(Lists& lists, std::uint32_t node, std::size_t step) {
  return lists[node].begin() + static_cast<std::ptrdiff_t>(step);
}

TEST(Mutants, that_count_a_child_twice_are_caught) {
  for (const Shape& shape : shapes()) {
    const std::size_t put_in = for_each_step(shape, Action::receive_combine, [&](Lists& lists, auto node, auto i) {
      const Step again = lists[node][i];
      lists[node].insert(step_at(lists, node, i), again);
      std::vector<Step>& sender = lists[again.peer];
      const auto sent = std::find_if(sender.begin(), sender.end(), [&](const Step& step) {
        return step.action == Action::send && step.peer == node && step.first == again.first;
      });
      ASSERT_NE(sent, sender.end());
      sender.insert(sent, Step(*sent));
      EXPECT_EQ(complaint(shape, lists).substr(0, 23), "a node is counted twice");
    });
    EXPECT_GE(put_in, shape.nodes - 1);
  }
}

TEST(Mutants, that_swap_the_order_of_two_children_are_caught) {
  for (const Shape& shape : shapes()) {
    SymbolicCluster right(shape, {});
    ASSERT_EQ(right.run(), "");
    std::size_t swapped = 0;
    for_each_step(shape, Action::receive_combine, [&](Lists& lists, auto node, auto i) {
      if (i + 1 == lists[node].size() || lists[node][i + 1].action != Action::receive_combine) return;
      if (lists[node][i + 1].first != lists[node][i].first) return;
      if (lists[node][i + 1].count != lists[node][i].count) return;
      std::iter_swap(step_at(lists, node, i), step_at(lists, node, i + 1));
      SymbolicCluster cluster(shape, {}, lists);
      const std::string wrong = cluster.run();
      EXPECT_TRUE(!wrong.empty() || cluster.bracketing(shape.root) != right.bracketing(shape.root));
      ++swapped;
    });
    EXPECT_GT(swapped, 0U);
  }
}

TEST(Mutants, that_send_before_what_they_hold_is_whole_are_caught) {
  for (const Shape& shape : shapes()) {
    std::size_t early = 0;
    for_each_step(shape, Action::send, [&](Lists& lists, auto node, auto i) {
      if (i == 0 || lists[node][i - 1].action != Action::receive_combine) return;
      if (lists[node][i - 1].first != lists[node][i].first) return;
      std::iter_swap(step_at(lists, node, i - 1), step_at(lists, node, i));
      // An answer is not whole; with a shifted root the sides of operands may tell it first.
      EXPECT_NE(complaint(shape, lists), "");
      ++early;
    });
    EXPECT_EQ(early > 0, shape.degree < shape.nodes);
  }
}

TEST(Mutants, that_mix_a_round_with_the_next_are_caught) {
  for (const Shape& shape : shapes()) {
    for (std::uint32_t node = 0; node < shape.nodes; ++node) {
      SymbolicCluster right(shape, {});
      right.add_round(shape);
      EXPECT_EQ(right.run(), "");
      if (node == shape.root && shape.splits == 0) continue;  // it sends nothing
      SymbolicCluster cluster(shape, {});
      cluster.add_round(shape);
      cluster.begin_with(node, 1);
      EXPECT_EQ(cluster.run().substr(0, 16), "rounds are mixed");
    }
  }
}

TEST(Mutants, that_lose_a_letter_are_caught) {
  for (const Shape& shape : shapes()) {
    const std::size_t lost = for_each_step(shape, Action::send, [&](Lists& lists, auto node, auto i) {
      lists[node].erase(step_at(lists, node, i));
      EXPECT_NE(complaint(shape, lists), "");
    });
    EXPECT_GE(lost, shape.nodes - 1);
  }
}

TEST(Mutants, that_put_an_operand_on_the_other_side_are_caught) {
  for (const Shape& shape : shapes()) {
    for_each_step(shape, Action::receive_combine, [&](Lists& lists, auto node, auto i) {
      lists[node][i].mine_left = !lists[node][i].mine_left;
      EXPECT_EQ(complaint(shape, lists).substr(0, 32), "operands are on the wrong sides,");
    });
  }
}

// Lists of rounds, flat and in several.
std::vector<Shape> rounds() {
  return {{Kind::barrier, 9}, {Kind::barrier, 6, 0, 0, 6}, {Kind::allgather, 11}, {Kind::allgather, 10, 0, 0, 3}};
}

TEST(Mutants, of_barriers_and_allgathers_that_lose_a_letter_are_caught) {
  for (const Shape& shape : rounds()) {
    const std::size_t lost = for_each_step(shape, Action::send, [&](Lists& lists, auto node, auto i) {
      lists[node].erase(step_at(lists, node, i));
      EXPECT_NE(complaint(shape, lists), "");
    });
    EXPECT_GE(lost, 4 * shape.nodes - 10);
  }
}

TEST(Mutants, of_barriers_and_allgathers_that_await_a_letter_too_few_are_caught) {
  for (const Shape& shape : rounds()) {
    for_each_step(shape, Action::receive_copy, [&](Lists& lists, auto node, auto i) {
      lists[node].erase(step_at(lists, node, i));
      EXPECT_NE(complaint(shape, lists), "");
    });
  }
}

TEST(Mutants, of_allgathers_that_send_before_they_hold_what_they_send_are_caught) {
  for (const Shape& shape : {Shape{Kind::allgather, 11}, Shape{Kind::allgather, 16, 0, 0, 4}}) {
    std::size_t early = 0;
    for_each_step(shape, Action::send, [&](Lists& lists, auto node, auto i) {
      if (i == 0 || lists[node][i - 1].action != Action::receive_copy || lists[node][i].count == 1) return;
      std::iter_swap(step_at(lists, node, i - 1), step_at(lists, node, i));
      // The last run of the last round may be so short that what comes late is not in it.
      const Step& sent = lists[node][i - 1];
      const Step& late = lists[node][i];
      const std::uint64_t from = (late.first + shape.nodes - sent.first) % shape.nodes;
      EXPECT_EQ(complaint(shape, lists) != "", from < sent.count);
      ++early;
    });
    EXPECT_GE(early, shape.nodes);
  }
}

TEST(Mutants, of_allgathers_that_take_one_block_for_another_are_caught) {
  for (const Shape& shape : rounds()) {
    if (shape.kind == Kind::barrier) continue;
    for_each_step(shape, Action::send, [&](Lists& lists, auto node, auto i) {
      Step& sent = lists[node][i];
      sent.first = (sent.first + 1) % shape.nodes;
      EXPECT_EQ(complaint(shape, lists).substr(0, 27), "a letter has other elements");
      // Where the receiver means the same block.
      for (Step& step : lists[sent.peer]) {
        if (step.action == Action::receive_copy && step.peer == node) step.first = sent.first;
      }
      EXPECT_EQ(complaint(shape, lists).substr(0, 25), "a block is another node's");
    });
  }
}

}  // namespace
}  // namespace farsum::trees
