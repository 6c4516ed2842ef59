// Which mutexes a process holds.
#include "runtime/held_mutexes.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

using State = HeldMutexes::State;

TEST(HeldMutexes, are_begun_from_the_state_that_they_are_in_and_from_no_other) {
  HeldMutexes held({1, 2});
  EXPECT_FALSE(held.begin_change({1, 1}, State::held)) << "it is free";
  ASSERT_TRUE(held.begin_change({1, 1}, State::free));
  EXPECT_FALSE(held.begin_change({1, 1}, State::free)) << "another thread is at it";
  held.end_change({1, 1}, State::held);
  EXPECT_FALSE(held.begin_change({1, 1}, State::free)) << "it is not recursive";
  EXPECT_TRUE(held.begin_change({1, 1}, State::held));
}

TEST(HeldMutexes, name_the_first_of_them_by_its_rank_and_number) {
  HeldMutexes held({2, 0, 3});
  EXPECT_FALSE(held.first_in_use().has_value());
  ASSERT_TRUE(held.begin_change({2, 2}, State::free));
  held.end_change({2, 2}, State::held);
  ASSERT_TRUE(held.first_in_use().has_value());
  EXPECT_EQ(held.first_in_use()->rank, 2u);
  EXPECT_EQ(held.first_in_use()->index, 2u);
  ASSERT_TRUE(held.begin_change({0, 1}, State::free));
  EXPECT_EQ(held.first_in_use()->rank, 0u) << "one that is waited for counts";
  EXPECT_EQ(held.first_in_use()->index, 1u);
}

TEST(HeldMutexes, of_a_group_without_any_are_none) { EXPECT_FALSE(HeldMutexes({0, 0}).first_in_use().has_value()); }

}  // namespace
}  // namespace farsum
