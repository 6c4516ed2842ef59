// Which way an operation goes, by what it is and who waits for it.
#include "window/route.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

Operation sum_of(std::uint64_t bytes) {
  Operation operation;
  operation.kind = OperationKind::accumulate;
  operation.type = ops::ElementType::int64;
  operation.op = ops::Operator::sum;
  operation.bytes = bytes;
  return operation;
}

// A region whose bulk operations and single elements go these ways.
class Routes : public testing::Test {
 protected:
  Routes() { reference.whole = true; }

  Path path_of(const Operation& operation, const RouteFacts& facts) {
    RegionRef at = reference;
    at.region = &region;
    return choose_route(operation, std::move(at), facts).path;
  }

  Region region;
  RegionRef reference;
  const RouteFacts here = {.is_here = true};
  const RouteFacts there = {.is_here = false};
};

TEST_F(Routes, follow_the_region) {
  region.bulk = Path::attach;
  region.atomic = Path::caller;
  EXPECT_EQ(path_of(sum_of(16), here), Path::attach);
  EXPECT_EQ(path_of(sum_of(8), here), Path::caller);
}

TEST_F(Routes, of_a_bare_notification_are_the_owners) {
  EXPECT_EQ(choose_route(Operation(), RegionRef(), there).path, Path::owner);
}

TEST_F(Routes, of_sums_are_the_callers_where_the_region_says_so) {
  region.bulk = Path::caller;
  region.atomic = Path::owner;
  EXPECT_EQ(path_of(sum_of(8), there), Path::owner);
  EXPECT_EQ(path_of(sum_of(1024), there), Path::caller);
}

TEST_F(Routes, where_only_atomics_may_touch_the_memory_are_those_of_single_elements) {
  region.bulk = Path::direct;
  region.atomic = Path::owner;
  region.domain.atomics_only = true;
  EXPECT_EQ(path_of(sum_of(64), here), Path::owner);
}

TEST_F(Routes, across_regions_are_the_owners) {
  region.bulk = region.atomic = Path::direct;
  reference.whole = false;
  EXPECT_EQ(path_of(sum_of(64), here), Path::owner);
  region.bulk = Path::attach;
  EXPECT_EQ(path_of(sum_of(64), here), Path::attach);
  reference.same_locks = false;
  EXPECT_EQ(path_of(sum_of(64), here), Path::owner);
}

TEST_F(Routes, to_memory_that_could_not_be_reached_are_the_owners) {
  region.bulk = Path::direct;
  reference.is_reached = false;
  EXPECT_EQ(path_of(sum_of(64), here), Path::owner);
}

TEST_F(Routes, with_a_notification_at_another_node_are_the_owners) {
  region.bulk = Path::caller;
  Operation operation = sum_of(64);
  operation.notify = true;
  EXPECT_EQ(path_of(operation, there), Path::owner);
  EXPECT_EQ(path_of(operation, here), Path::caller);
}

TEST_F(Routes, gather_only_what_nobody_waits_for) {
  region.bulk = region.atomic = Path::aggregated;
  EXPECT_EQ(path_of(sum_of(8), there), Path::aggregated);
  EXPECT_EQ(path_of(sum_of(8), {.is_awaited = true}), Path::owner);
  EXPECT_EQ(path_of(sum_of(16), there), Path::owner);
}

TEST(Messages, carry_out_what_goes_to_owners_and_what_is_only_moved_between_nodes) {
  Operation put;
  put.bytes = 8;
  for (const Path path : {Path::owner, Path::aggregated, Path::offload})
    EXPECT_TRUE(goes_as_messages(put, path, true)) << name_of(path);
  EXPECT_FALSE(goes_as_messages(put, Path::direct, true));
  EXPECT_FALSE(goes_as_messages(put, Path::attach, true));
  EXPECT_FALSE(goes_as_messages(put, Path::caller, true));
  EXPECT_TRUE(goes_as_messages(put, Path::caller, false));
  EXPECT_FALSE(goes_as_messages(sum_of(64), Path::caller, false));
}

}  // namespace
}  // namespace farsum
