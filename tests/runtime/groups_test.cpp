// Groups of a rank, made of it alone.
#include "runtime/groups.hpp"

#include <array>

#include "lone_rank.hpp"

namespace farsum::test {
namespace {

constexpr std::array<std::uint32_t, 1> only_this_rank = {0};

TEST(GroupsTest, have_the_node_and_the_job_before_any_is_made) {
  LoneRankWithGroups rank;
  EXPECT_EQ(rank.groups.world().size(), 1u);
  EXPECT_TRUE(rank.groups.world().meets());
  EXPECT_NE(&rank.groups.world(), &rank.groups.home());
  EXPECT_TRUE(rank.groups.world().team().barrier("test").is_ok());
}

TEST(GroupsTest, give_back_what_a_group_took) {
  LoneRankWithGroups rank;
  const std::uint64_t before = rank.node.segment().heap().allocated_bytes();
  Result<Group*> group = rank.groups.create(rank.groups.world(), only_this_rank);
  ASSERT_TRUE(group.is_ok()) << group.take_status().text();
  EXPECT_GT(rank.node.segment().heap().allocated_bytes(), before);
  EXPECT_TRUE(rank.groups.free(group.value()).is_ok());
  EXPECT_EQ(rank.node.segment().heap().allocated_bytes(), before);
}

TEST(GroupsTest, give_back_what_a_group_took_when_its_ranks_leave_it) {
  LoneRankWithGroups rank;
  const std::uint64_t before = rank.node.segment().heap().allocated_bytes();
  Result<Group*> group = rank.groups.create(rank.groups.world(), only_this_rank, {.number = 3});
  ASSERT_TRUE(group.is_ok()) << group.take_status().text();
  EXPECT_TRUE(rank.groups.leave(group.value()).is_ok());
  EXPECT_EQ(rank.node.segment().heap().allocated_bytes(), before);
}

TEST(GroupsTest, refuse_lists_with_strangers_doubles_or_without_the_caller) {
  LoneRankWithGroups rank;
  Group& world = rank.groups.world();
  EXPECT_EQ(rank.groups.create(world, std::array<std::uint32_t, 2>{0, 1}).take_status().code(), Code::rank);
  EXPECT_EQ(rank.groups.create(world, std::array<std::uint32_t, 2>{0, 0}).take_status().code(), Code::argument);
  EXPECT_EQ(rank.groups.create(world, {}).take_status().code(), Code::argument);
}

TEST(GroupsTest, free_neither_the_job_s_nor_one_that_is_used) {
  LoneRankWithGroups rank;
  EXPECT_EQ(rank.groups.free(&rank.groups.world()).code(), Code::argument);
  EXPECT_EQ(rank.groups.leave(&rank.groups.world()).code(), Code::argument);
  Result<Group*> group = rank.groups.create(rank.groups.world(), only_this_rank);
  ASSERT_TRUE(group.is_ok());
  group.value()->users() = 1;
  EXPECT_EQ(rank.groups.free(group.value()).code(), Code::pending);
  EXPECT_EQ(rank.groups.leave(group.value()).code(), Code::pending);
  group.value()->users() = 0;
  EXPECT_TRUE(rank.groups.free(group.value()).is_ok());
}

TEST(GroupsTest, know_no_open_requests_where_none_was_made) {
  LoneRankWithGroups rank;
  EXPECT_TRUE(rank.groups.find_open_requests().is_ok());
}

}  // namespace
}  // namespace farsum::test
