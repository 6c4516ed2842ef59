// The credit of one origin at its target, without a link.
#include "transport/link/target_credit.hpp"

#include <gtest/gtest.h>

namespace farsum::link {
namespace {

// Whom the pool has something for; the tests say themselves when credit is taken.
class IdleTaker final : public CreditTaker {
 public:
  bool take_credit() override { return false; }
  bool return_idle_credit() override { return false; }
};

class CreditOfOrigin : public testing::Test {
 protected:
  CreditOfOrigin() { credit.begin(); }

  static constexpr std::uint64_t most_window = 2 << 20;
  CreditPool pool{8 << 20, 4};
  IdleTaker taker, other_taker;
  TargetCredit credit{pool, taker, most_window};
};

TEST_F(CreditOfOrigin, begins_with_its_base_and_ends_with_nothing) {
  EXPECT_EQ(credit.allowed(), pool.base());
  EXPECT_EQ(credit.granted(), pool.base());
  EXPECT_EQ(pool.used(), pool.base());
  credit.end();
  EXPECT_EQ(credit.granted(), 0u);
  EXPECT_EQ(pool.used(), 0u);
  credit.release(100);
  EXPECT_EQ(credit.granted(), 0u) << "all of it went back at once";
}

TEST_F(CreditOfOrigin, covers_what_was_neither_spent_nor_returned) {
  const std::uint64_t base = pool.base();
  EXPECT_TRUE(credit.covers(base, 0, 0));
  EXPECT_FALSE(credit.covers(base + 1, 0, 0));
  credit.spend(1000);
  EXPECT_TRUE(credit.covers(base - 1000, 0, 0));
  EXPECT_FALSE(credit.covers(base - 1000, 1, 0)) << "of what came early";
  EXPECT_FALSE(credit.covers(base - 1000, 0, 1)) << "which the frame itself returns";
  credit.take_back(500);
  EXPECT_TRUE(credit.covers(base - 1500, 0, 500));
  EXPECT_FALSE(credit.covers(base - 1499, 0, 0));
  EXPECT_FALSE(credit.covers(~std::uint64_t{0}, 0, 0));
}

TEST_F(CreditOfOrigin, cannot_be_returned_once_it_is_used) {
  credit.spend(1000);
  EXPECT_TRUE(credit.can_have_returned(pool.base() - 1000, 0));
  EXPECT_FALSE(credit.can_have_returned(pool.base() - 999, 0));
  EXPECT_FALSE(credit.can_have_returned(pool.base() - 1000, 1));
}

TEST_F(CreditOfOrigin, is_topped_up_as_it_is_released) {
  credit.spend(1000);
  credit.renew(false);
  EXPECT_EQ(credit.allowed(), pool.base()) << "nothing has come back";
  credit.release(1000);
  credit.renew(false);
  EXPECT_EQ(credit.allowed(), pool.base() + 1000);
  EXPECT_EQ(credit.granted(), pool.base());
}

TEST_F(CreditOfOrigin, grows_with_what_is_wanted_up_to_the_most) {
  for (std::uint64_t upto = pool.base() + 1; credit.granted() != most_window; upto = credit.allowed() + 1) {
    const std::uint64_t before = credit.granted();
    credit.want(upto, false);
    EXPECT_TRUE(credit.is_short());
    credit.renew(false);
    ASSERT_FALSE(credit.is_short());
    ASSERT_EQ(credit.granted(), std::min(2 * before, most_window));
  }
  credit.take_back(1);
  EXPECT_EQ(credit.granted(), most_window - 1);
  credit.renew(false);
  EXPECT_EQ(credit.granted(), most_window - 1) << "what was returned was not needed: the window is short again";
}

TEST_F(CreditOfOrigin, keeps_to_its_base_while_others_wait_until_it_is_its_turn) {
  CreditShare other_share;
  pool.join(other_taker);
  pool.wait(other_taker, other_share);
  credit.want(pool.base() + 1, false);
  credit.renew(false);
  EXPECT_TRUE(credit.is_short());
  credit.renew(true);
  EXPECT_FALSE(credit.is_short());
  pool.leave(other_taker, other_share);
}

TEST_F(CreditOfOrigin, waits_in_the_pool_while_it_is_short) {
  credit.wait_if_short();
  EXPECT_FALSE(pool.has_waiters());
  credit.want(pool.base() + 1, false);
  credit.wait_if_short();
  EXPECT_TRUE(pool.has_waiters());
  credit.end();
  EXPECT_FALSE(pool.has_waiters());
}

TEST_F(CreditOfOrigin, comes_out_of_the_reserve_at_any_price_only) {
  CreditPool scarce(0, 4);
  TargetCredit hungry(scarce, other_taker, most_window);
  TargetCredit credit_of_scarce(scarce, taker, most_window);
  hungry.begin();
  credit_of_scarce.begin();
  for (std::uint64_t before = 0; hungry.granted() != before;) {
    before = hungry.granted();
    hungry.want(hungry.allowed() + 1, false);
    hungry.renew(true);
  }
  while (scarce.can_grow({}, 1) != 0) {
    CreditShare rest;
    scarce.grow(rest, scarce.can_grow(rest, scarce.total()));
  }
  credit_of_scarce.want(credit_of_scarce.allowed() + 1000, false);
  credit_of_scarce.renew(true);
  EXPECT_TRUE(credit_of_scarce.is_short()) << "all is out but the reserve";
  credit_of_scarce.want(credit_of_scarce.allowed() + 1000, true);
  credit_of_scarce.renew(false);
  EXPECT_TRUE(credit_of_scarce.is_short()) << "it is not its turn";
  credit_of_scarce.renew(true);
  EXPECT_FALSE(credit_of_scarce.is_short());
}

TEST_F(CreditOfOrigin, is_recalled_once_for_each_grant_where_more_than_the_base_is_unspent_or_replies_are_held) {
  EXPECT_FALSE(credit.recall(false)) << "it has its base only";
  EXPECT_TRUE(credit.recall(true));
  EXPECT_FALSE(credit.recall(true));
  credit.forget_recall();
  credit.want(2 * pool.base(), false);
  credit.renew(false);
  EXPECT_TRUE(credit.recall(false));
  EXPECT_FALSE(credit.recall(false));
  credit.take_back(pool.base());
  EXPECT_FALSE(credit.recall(false)) << "that is back";
}

TEST_F(CreditOfOrigin, is_worth_telling_when_a_quarter_of_the_window_is_new_or_a_wait_ends) {
  const std::uint64_t base = pool.base();
  EXPECT_FALSE(credit.is_worth_telling(base));
  EXPECT_FALSE(credit.is_worth_telling(base - base / 4 + 1));
  EXPECT_TRUE(credit.is_worth_telling(base - base / 4));
  credit.spend(100);
  credit.want(base + 1, false);
  EXPECT_FALSE(credit.is_worth_telling(base)) << "it has not got it";
  credit.renew(false);
  EXPECT_TRUE(credit.is_worth_telling(base));
}

TEST_F(CreditOfOrigin, has_much_to_grant_when_half_of_a_long_window_has_come_back) {
  EXPECT_FALSE(credit.has_much_to_grant());
  while (credit.granted() != most_window) {
    credit.want(credit.allowed() + 1, false);
    credit.renew(false);
  }
  credit.spend(most_window);
  credit.release(most_window / 2 - 1);
  EXPECT_FALSE(credit.has_much_to_grant());
  credit.release(1);
  EXPECT_TRUE(credit.has_much_to_grant());
  credit.renew(false);
  EXPECT_FALSE(credit.has_much_to_grant());
}

}  // namespace
}  // namespace farsum::link
