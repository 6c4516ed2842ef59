// How long a thread looks for a reply from afar follows how long replies have taken.
#include "runtime/reply_look.hpp"

#include <gtest/gtest.h>

namespace farsum::test {
namespace {

constexpr std::uint64_t wake_up_ns = 1000;

ReplyLook& after(ReplyLook& look, int waits, std::uint64_t each_ns) {
  for (int i = 0; i < waits; ++i) look.took(each_ns);
  return look;
}

TEST(ReplyLookTest, is_two_wake_ups_before_any_reply_and_where_replies_are_soon_there) {
  ReplyLook look(wake_up_ns);
  EXPECT_EQ(look.longest_ns(), 2 * wake_up_ns);
  EXPECT_EQ(after(look, 100, wake_up_ns / 2).longest_ns(), 2 * wake_up_ns);
}

TEST(ReplyLookTest, is_twice_what_replies_usually_take) {
  ReplyLook look(wake_up_ns);
  EXPECT_NEAR(static_cast<double>(after(look, 100, 3000).longest_ns()), 6000.0, 60.0);
  EXPECT_NEAR(static_cast<double>(after(look, 100, 1500).longest_ns()), 3000.0, 60.0);
}

TEST(ReplyLookTest, has_a_bound_up_to_which_replies_are_looked_for) {
  ReplyLook look(wake_up_ns);
  EXPECT_EQ(after(look, 100, 7000).longest_ns(), 8 * wake_up_ns);
  EXPECT_EQ(after(look, 100, 9000).longest_ns(), 2 * wake_up_ns);
}

TEST(ReplyLookTest, forgets_one_long_wait_at_once_and_many_within_few_short_ones) {
  ReplyLook look(wake_up_ns);
  after(look, 100, 3000);
  EXPECT_LE(after(look, 1, 1'000'000'000).longest_ns(), 8 * wake_up_ns);
  EXPECT_GT(look.longest_ns(), 6000U);
  EXPECT_EQ(after(look, 100, 1'000'000'000).longest_ns(), 2 * wake_up_ns);
  EXPECT_GT(after(look, 8, 3000).longest_ns(), 6000U);
}

TEST(ReplyLookTest, is_none_where_waiting_threads_are_not_to_look) {
  ReplyLook look(0);
  EXPECT_EQ(after(look, 100, 3000).longest_ns(), 0U);
}

}  // namespace
}  // namespace farsum::test
