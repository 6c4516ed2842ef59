#include "reduce/cases/samples.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace collectives {
namespace {

TEST(Samples, have_quantiles_between_neighbours_in_whatever_order_they_are) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(quantile({10, 0}, 0.9), 9);
  EXPECT_DOUBLE_EQ(quantile({7}, 1), 7);
}

TEST(Samples, deviate_without_the_hundredth_that_is_longest) {
  std::vector<double> numbers(200, 10);
  for (std::size_t i = 0; i < 100; ++i) numbers[i] = 14;
  const Distribution even = distribution_of(numbers);
  EXPECT_DOUBLE_EQ(even.mean, 12);
  numbers[0] = numbers[1] = 1e6;
  const Distribution of_200 = distribution_of(numbers);
  EXPECT_NEAR(of_200.deviation, 2, 1e-3);
  EXPECT_GT(of_200.mean, 10'000);
  numbers[2] = 1e6;
  EXPECT_GT(distribution_of(numbers).deviation, 1000) << "a third one of 200 is not dropped";
}

TEST(Samples, of_less_than_a_hundred_all_count) {
  std::vector<double> numbers(99, 1);
  numbers.back() = 100;
  EXPECT_GT(distribution_of(numbers).deviation, 9);
  numbers.push_back(1);
  EXPECT_DOUBLE_EQ(distribution_of(numbers).deviation, 0);
}

TEST(Samples, lie_in_bins_that_hold_them_all) {
  const Distribution distribution = distribution_of({1, 1.05, 10, 11, 1000});
  ASSERT_EQ(distribution.bins.size(), 3U);
  EXPECT_DOUBLE_EQ(distribution.bins[0].from, 1);
  EXPECT_EQ(distribution.bins[0].count, 2);
  EXPECT_DOUBLE_EQ(distribution.bins[1].from, 10);
  EXPECT_EQ(distribution.bins[1].count, 2);
  EXPECT_DOUBLE_EQ(distribution.bins[2].from, 1000);
  EXPECT_EQ(distribution.bins[2].count, 1);
}

TEST(Samples, of_no_length_lie_in_a_bin_too) {
  const Distribution distribution = distribution_of({0, -0.5, 1e-9});
  ASSERT_EQ(distribution.bins.size(), 1U);
  EXPECT_EQ(distribution.bins[0].count, 3);
}

}  // namespace
}  // namespace collectives
