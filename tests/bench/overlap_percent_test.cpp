// Times put in by hand, with what the formulas of OSU's and Intel's benchmarks make of them.
#include <gtest/gtest.h>

#include "reduce/cases/overlap_percent.hpp"

namespace collectives {
namespace {

TEST(Overlap, is_whole_where_the_call_takes_no_time_beside_the_computing) {
  const OverlapTimes hidden{.pure_us = 20, .computing_us = 1000, .whole_us = 1000};
  EXPECT_DOUBLE_EQ(osu_percent(hidden), 100);
  EXPECT_DOUBLE_EQ(imb_percent(hidden), 100);
}

TEST(Overlap, is_none_where_the_call_begins_when_the_computing_has_ended_and_never_less) {
  for (const double whole_us : {1020.0, 1040.0}) {
    const OverlapTimes behind{.pure_us = 20, .computing_us = 1000, .whole_us = whole_us};
    EXPECT_DOUBLE_EQ(osu_percent(behind), 0);
    EXPECT_DOUBLE_EQ(imb_percent(behind), 0);
  }
}

TEST(Overlap, is_a_part_of_the_call_by_both_where_the_computing_is_longer) {
  const OverlapTimes a_quarter_left{.pure_us = 20, .computing_us = 1000, .whole_us = 1005};
  EXPECT_DOUBLE_EQ(osu_percent(a_quarter_left), 75);
  EXPECT_DOUBLE_EQ(imb_percent(a_quarter_left), 75);
}

TEST(Overlap, is_a_part_of_the_shorter_by_intels_formula_alone) {
  const OverlapTimes long_call{.pure_us = 2000, .computing_us = 1000, .whole_us = 2000};
  EXPECT_DOUBLE_EQ(osu_percent(long_call), 50);
  EXPECT_DOUBLE_EQ(imb_percent(long_call), 100);
}

}  // namespace
}  // namespace collectives
