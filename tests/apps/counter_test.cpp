// counter's judgement of the tickets: what it accepts and what it names as wrong.
#include <gtest/gtest.h>

#include "../../apps/counter/tickets.hpp"

namespace counter {
namespace {

TEST(Tickets, are_right_when_each_came_once_and_one_per_rank_past_the_end) {
  EXPECT_TRUE(judge({{0, 2, 5}, {1, 3, 4}}, 4, apps::CounterKind::strict).right);
}

TEST(Tickets, are_wrong_when_two_ranks_got_the_same) {
  const Verdict verdict = judge({{0, 1, 3}, {1, 2, 4}}, 3, apps::CounterKind::strict);
  EXPECT_FALSE(verdict.right);
  EXPECT_EQ(verdict.text, "ticket 1 was drawn twice, by ranks 0 and 1");
}

TEST(Tickets, are_wrong_when_one_past_the_end_came_twice) {
  EXPECT_FALSE(judge({{0, 2}, {1, 2}}, 2, apps::CounterKind::strict).right);
  EXPECT_FALSE(judge({{0, 2}, {1, 2}}, 2, apps::CounterKind::tree).right);
}

TEST(Tickets, are_wrong_when_one_is_missing) {
  EXPECT_EQ(judge({{0, 2}, {3, 4}}, 3, apps::CounterKind::per_rank).text, "ticket 1 is missing: 2 came instead");
  EXPECT_EQ(judge({{0}, {1}}, 3, apps::CounterKind::leased).text, "2 tickets of 3 were drawn");
}

TEST(Tickets, of_a_strict_counter_must_grow_on_each_rank) {
  EXPECT_EQ(judge({{1, 0, 2}}, 2, apps::CounterKind::strict).text, "rank 0 drew ticket 1 and after it 0");
  EXPECT_TRUE(judge({{1, 0, 2}}, 2, apps::CounterKind::tree).right);
}

TEST(Tickets, of_a_leased_counter_may_be_anything_past_its_limit) {
  EXPECT_TRUE(judge({{1, 0, 2}, {2}}, 2, apps::CounterKind::leased).right);
  EXPECT_TRUE(judge({{1, 0, 7}, {9}}, 2, apps::CounterKind::leased).right);
}

}  // namespace
}  // namespace counter
