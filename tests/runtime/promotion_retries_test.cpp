// When what could not be turned back is tried again.
#include "runtime/promotion_retries.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

// How many frees it takes until it is due.
std::uint32_t frees_until_due(PromotionRetries& retries) {
  std::uint32_t frees = 1;
  while (!retries.is_due_after_free()) ++frees;
  return frees;
}

TEST(PromotionRetries, are_due_with_each_free_while_nothing_fails) {
  PromotionRetries retries;
  EXPECT_EQ(frees_until_due(retries), 1u);
  retries.succeeded();
  EXPECT_EQ(frees_until_due(retries), 1u);
}

TEST(PromotionRetries, wait_twice_as_long_after_each_failure_up_to_a_limit) {
  PromotionRetries retries;
  for (std::uint32_t expected = 2; expected <= PromotionRetries::most_frees_between; expected *= 2) {
    retries.failed();
    EXPECT_EQ(frees_until_due(retries), expected);
  }
  retries.failed();
  EXPECT_EQ(frees_until_due(retries), PromotionRetries::most_frees_between);
}

TEST(PromotionRetries, begin_anew_with_a_success) {
  PromotionRetries retries;
  retries.failed();
  retries.failed();
  retries.succeeded();
  EXPECT_EQ(frees_until_due(retries), 1u);
}

// A try may end without an answer, where there is no memory for one.
TEST(PromotionRetries, keep_their_distance_where_nobody_says_how_it_went) {
  PromotionRetries retries;
  retries.failed();
  EXPECT_EQ(frees_until_due(retries), 2u);
  EXPECT_EQ(frees_until_due(retries), 2u);
}

}  // namespace
}  // namespace farsum
