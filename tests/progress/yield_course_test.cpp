// The table of progress/yield_course.hpp.
#include "progress/yield_course.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

// How many waits sleep at once before the next one that yields.
std::uint32_t skipped(YieldCourse& course) {
  std::uint32_t count = 0;
  while (!course.yields()) ++count;
  return count;
}

TEST(YieldCourse, yields_in_each_wait_that_yields_end) {
  YieldCourse course;
  for (int wait = 0; wait < 10; ++wait) {
    EXPECT_EQ(skipped(course), 0u);
    course.ended(true);
  }
}

TEST(YieldCourse, skips_ever_more_waits_up_to_63_while_yields_are_in_vain) {
  YieldCourse course;
  ASSERT_TRUE(course.yields());
  for (const std::uint32_t expected : {1u, 3u, 7u, 15u, 31u, 63u, 63u, 63u}) {
    course.ended(false);
    EXPECT_EQ(skipped(course), expected);
  }
}

TEST(YieldCourse, yields_again_in_each_wait_once_they_have_ended_one) {
  YieldCourse course;
  ASSERT_TRUE(course.yields());
  for (int wait = 0; wait < 5; ++wait) {
    course.ended(false);
    skipped(course);
  }
  course.ended(true);
  EXPECT_EQ(skipped(course), 0u);
  course.ended(false);
  EXPECT_EQ(skipped(course), 1u) << "it begins anew";
}

}  // namespace
}  // namespace farsum
