// What an origin may spend, wants and gives back, without a link.
#include "transport/link/origin_credit.hpp"

#include <gtest/gtest.h>

namespace farsum::link {
namespace {

constexpr std::uint64_t hold_ns = 1'000'000;

class Allowed : public testing::Test {
 protected:
  Allowed() { credit.allow(1000); }

  OriginCredit credit{hold_ns};
};

TEST_F(Allowed, covers_what_was_neither_spent_nor_given_back) {
  EXPECT_TRUE(credit.covers(1000));
  EXPECT_FALSE(credit.covers(1001));
  credit.spend(400, false);
  EXPECT_TRUE(credit.covers(600));
  EXPECT_FALSE(credit.covers(601));
  ASSERT_TRUE(credit.on_recall(100, 0));
  credit.give_back();
  EXPECT_EQ(credit.returned(), 500u);
  EXPECT_TRUE(credit.covers(100));
  EXPECT_FALSE(credit.covers(101));
}

TEST_F(Allowed, never_falls) {
  credit.allow(500);
  EXPECT_TRUE(credit.covers(1000));
}

TEST_F(Allowed, is_of_no_more_than_an_honest_target_has) {
  EXPECT_TRUE(credit.can_be_allowed(std::uint64_t{1} << 40));
  EXPECT_FALSE(credit.can_be_allowed((std::uint64_t{1} << 40) + 1));
  credit.spend(1, false);
  EXPECT_TRUE(credit.can_be_allowed((std::uint64_t{1} << 40) + 1));
}

TEST_F(Allowed, is_asked_for_once_until_more_is_wanted_or_more_is_allowed) {
  EXPECT_FALSE(credit.must_ask());
  credit.want(1000, true);
  EXPECT_FALSE(credit.is_short()) << "that is there";
  credit.want(1500, true);
  EXPECT_TRUE(credit.is_short());
  ASSERT_TRUE(credit.must_ask());
  const OriginCredit::Question question = credit.ask();
  EXPECT_EQ(question.first, 0u);
  EXPECT_EQ(question.stamp, 1500u);
  EXPECT_FALSE(credit.must_ask());
  credit.want(1400, true);
  EXPECT_FALSE(credit.must_ask());
  credit.want(1501, true);
  EXPECT_TRUE(credit.must_ask());
  credit.ask();
  credit.allow(1200);
  EXPECT_TRUE(credit.must_ask());
  credit.ask();
  credit.allow(1501);
  EXPECT_FALSE(credit.must_ask());
  EXPECT_TRUE(credit.is_wanted()) << "until it is posted";
}

TEST_F(Allowed, is_asked_for_again_at_any_price_and_over_a_new_connection) {
  credit.want(1500, true);
  credit.ask();
  credit.want(1500, false);
  ASSERT_TRUE(credit.must_ask());
  EXPECT_EQ(credit.ask().first, 1u);
  EXPECT_FALSE(credit.must_ask());
  credit.forget_question();
  EXPECT_TRUE(credit.must_ask());
}

TEST_F(Allowed, asks_for_nothing_where_nothing_is_wanted) {
  EXPECT_EQ(credit.ask().stamp, 0u);
  EXPECT_EQ(credit.ask().first, 0u);
}

TEST_F(Allowed, for_a_request_at_any_price_is_wanted_until_such_a_one_is_posted) {
  credit.want(1500, false);
  EXPECT_TRUE(credit.is_wanted_at_any_price());
  credit.allow(1500);
  credit.spend(100, true);
  EXPECT_TRUE(credit.is_wanted_at_any_price()) << "it was another that may wait";
  credit.spend(100, false);
  EXPECT_FALSE(credit.is_wanted_at_any_price());
  EXPECT_FALSE(credit.is_wanted());
}

TEST_F(Allowed, stays_a_while_for_a_request_that_was_refused_and_has_enough_by_now) {
  credit.want(1500, true);
  credit.allow(1500);
  EXPECT_FALSE(credit.on_recall(0, 50));
  EXPECT_EQ(credit.give_back_at_ns(), 50 + hold_ns);
  credit.spend(1500, true);
  EXPECT_EQ(credit.give_back_at_ns(), never) << "it has come";
}

TEST_F(Allowed, goes_back_at_once_where_nothing_waits_or_what_waits_needs_more) {
  EXPECT_TRUE(credit.on_recall(0, 0));
  credit.want(1500, true);
  EXPECT_TRUE(credit.on_recall(300, 0));
  credit.give_back();
  EXPECT_EQ(credit.returned(), 700u);
  EXPECT_EQ(credit.ask().stamp, 2200u) << "it gets all that it needs at once";
}

TEST_F(Allowed, is_much_from_half_of_what_is_unspent_or_while_it_is_short_or_recalled) {
  EXPECT_FALSE(credit.is_much(500));
  EXPECT_TRUE(credit.is_much(501));
  credit.on_recall(1000, 0);
  EXPECT_TRUE(credit.is_much(1));
  credit.spend(100, false);
  EXPECT_FALSE(credit.is_much(1));
  credit.want(1500, false);
  EXPECT_TRUE(credit.is_much(1));
}

}  // namespace
}  // namespace farsum::link
