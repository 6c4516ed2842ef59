#include "runtime/reduction_schedules.hpp"

#include <gtest/gtest.h>

#include "trees/schedule.hpp"

namespace farsum {
namespace {

TEST(ReductionSchedule, is_that_of_the_tree_or_of_all_at_once_where_no_tree_is_asked_for) {
  EXPECT_EQ(reduction_schedule(12, 0).degree, 0u);
  EXPECT_EQ(reduction_schedule(13, 0).degree, 2u);
  EXPECT_EQ(reduction_schedule(12, 4).degree, 4u);
  const trees::Shape binomial = {.kind = trees::Kind::allreduce, .nodes = 13, .elements = 1};
  EXPECT_EQ(reduction_schedule(13, 0).hash, trees::hash_of(binomial));
}

TEST(ReductionSchedule, has_one_hash_where_nodes_combine_in_one_order_and_another_where_not) {
  EXPECT_EQ(reduction_schedule(13, 0).hash, reduction_schedule(13, 2).hash);
  EXPECT_EQ(reduction_schedule(5, 8).hash, reduction_schedule(5, 1000).hash);
  EXPECT_NE(reduction_schedule(5, 0).hash, reduction_schedule(5, 8).hash) << "each folds, or one does";
  EXPECT_NE(reduction_schedule(13, 3).hash, reduction_schedule(13, 2).hash);
  EXPECT_NE(reduction_schedule(12, 0).hash, reduction_schedule(11, 0).hash);
}

}  // namespace
}  // namespace farsum
