#include "os/default_arithmetic.hpp"

#include <gtest/gtest.h>

#include <cfenv>

namespace farsum::os {
namespace {

// Not worked out by the compiler.
template <class Number>
Number quotient(Number one, Number other) {
  volatile Number divisor = other;
  return one / divisor;
}

template <class Number>
void expect_rounding_by_default_within(int other_rounding) {
  const Number nearest = quotient<Number>(1, 3);
  ASSERT_EQ(std::fesetround(other_rounding), 0);
  const Number other = quotient<Number>(1, 3);
  EXPECT_NE(other, nearest);
  {
    const DefaultArithmetic arithmetic;
    EXPECT_EQ(quotient<Number>(1, 3), nearest);
  }
  EXPECT_EQ(quotient<Number>(1, 3), other);
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
}

TEST(DefaultArithmetic, rounds_as_a_process_that_begins) {
  expect_rounding_by_default_within<double>(FE_UPWARD);
  expect_rounding_by_default_within<long double>(FE_DOWNWARD);
}

template <class Number>
void expect_flags_as_before() {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  {
    const DefaultArithmetic arithmetic;
    EXPECT_EQ(std::fetestexcept(FE_OVERFLOW), 0);
    EXPECT_GT(quotient<Number>(1, 0), 0);
  }
  EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO), 0);
  EXPECT_NE(std::fetestexcept(FE_OVERFLOW), 0);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(DefaultArithmetic, leaves_no_flags_behind_and_takes_none_away) {
  expect_flags_as_before<double>();
  expect_flags_as_before<long double>();
}

TEST(DefaultArithmetic, ends_no_program_that_would_be_told_of_errors) {
  std::feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_DIVBYZERO);
  {
    const DefaultArithmetic arithmetic;
    EXPECT_GT(quotient<double>(1, 0), 0);
    EXPECT_GT(quotient<long double>(1, 0), 0);
  }
  EXPECT_EQ(quotient<long double>(1, 4), 0.25L);
  EXPECT_EQ(fedisableexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
}

}  // namespace
}  // namespace farsum::os
