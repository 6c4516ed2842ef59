// What a node's ranks have brought becomes the node's part of the answer.
#include "collectives/carried_folds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carried_folds_of_node.hpp"

namespace farsum {
namespace {

using CallKind = CarriedCall::Kind;
using What = CarriedFinding::What;

TEST(CarriedFolds, of_what_is_short_are_done_by_the_last_to_come) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0, 0}, 0, boxes);
  const CarriedCall sum = of.leave(CallKind::allreduce, 2, 0);
  of.folds[2].begin(0);
  EXPECT_TRUE(of.is_over(0));
  EXPECT_EQ(of.answer(0, sum, 1), 6u);
  const CarriedCall told = of.leave(CallKind::broadcast, 2, 1, {.root = 1});
  of.folds[0].begin(1);
  EXPECT_EQ(of.answer(1, told, 0), 1u);
  const CarriedCall gathered = of.leave(CallKind::allgather, 2, 2);
  of.folds[1].begin(2);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(of.answer(2, gathered, i), i / 2 + i % 2);
  EXPECT_FALSE(of.folds[1].fold_slice(2));
  for (const auto& member : of.node.members) EXPECT_TRUE(member.help.rung.empty());
}

TEST(CarriedFolds, of_what_is_long_are_shared_and_over_with_the_last_slice) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0}, 0, boxes);
  constexpr std::size_t count = 3 * CarriedFolds::slice_bytes / sizeof(std::uint64_t);
  const CarriedCall sum = of.leave(CallKind::allreduce, count, 1);
  of.folds[1].begin(1);
  EXPECT_THAT(of.node.members[1].help.rung, testing::ElementsAre(0));
  EXPECT_FALSE(of.is_over(1));
  EXPECT_TRUE(of.folds[0].fold_slice_in(1));
  EXPECT_FALSE(of.folds[0].fold_slice_in(2));
  EXPECT_FALSE(of.is_over(1));
  EXPECT_TRUE(of.folds[1].fold_slice(1));
  EXPECT_TRUE(of.is_over(1));
  EXPECT_FALSE(of.folds[0].fold_slice_in(1));
  for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) EXPECT_EQ(of.answer(1, sum, i), 2 * i + 1);
}

TEST(CarriedFolds, are_none_where_ranks_have_said_different_things) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0}, 0, boxes);
  of.leave_one(of.node.members[0], WordsOfRank(CallKind::allreduce, 3, 0), 0);
  of.leave_one(of.node.members[1], WordsOfRank(CallKind::allreduce, 4, 0), 0);
  of.folds[0].begin(0);
  EXPECT_TRUE(of.is_over(0));
  EXPECT_EQ(of.place(0).found.what, What::another_call);
  EXPECT_EQ(of.place(0).found.rank, 1u);
  EXPECT_EQ(call_in(of.place(0).found.said)->count, 4u);
  EXPECT_EQ(call_in(of.place(0).found.other_said)->count, 3u);
}

TEST(CarriedFolds, say_who_has_no_room_to_map_what_others_bring) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0}, 0, boxes);
  of.leave(CallKind::allreduce, 2 * CarriedFolds::slice_bytes / sizeof(std::uint64_t), 0);
  of.node.members[1].help.can_reach = false;
  of.folds[1].begin(0);
  EXPECT_TRUE(of.is_over(0));
  EXPECT_EQ(of.place(0).found.what, What::lacks_memory);
  EXPECT_EQ(of.place(0).found.rank, 1u);
}

TEST(CarriedFolds, say_who_had_no_room_in_a_later_slice) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0}, 0, boxes);
  of.leave(CallKind::allreduce, 2 * CarriedFolds::slice_bytes / sizeof(std::uint64_t), 0);
  of.folds[0].begin(0);
  of.node.members[1].help.can_reach = false;
  EXPECT_TRUE(of.folds[1].fold_slice(0));
  EXPECT_TRUE(of.is_over(0));
  EXPECT_EQ(of.place(0).found.what, What::lacks_memory);
  EXPECT_EQ(of.place(0).found.rank, 1u);
}

TEST(CarriedFolds, leave_a_call_of_several_nodes_to_the_first_rank) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0, 1}, 0, boxes);
  of.leave(CallKind::allreduce, 2, 5);
  of.folds[1].begin(5);
  EXPECT_FALSE(of.is_over(5));
  EXPECT_EQ(of.place(5).is_folded, CarriedPlace::tag_of(5));
  EXPECT_THAT(of.node.members[1].help.rung, testing::ElementsAre(0));
}

// Ranks 0 and 1 are neighbours.
TEST(CarriedFolds, by_ranks_over_several_nodes_lie_where_the_left_one_has_left_its_part) {
  Mailboxes boxes;
  FoldsOfNode of({0, 0, 1}, 0, boxes, ReduceOrder::ranks);
  of.leave(CallKind::allreduce, 1, 0, {.order = ReduceOrder::ranks});
  of.folds[1].begin(0);
  EXPECT_EQ(word_at(of.node.members[0].memory.data_of(0, 0, 8), 0), 1u);
}

}  // namespace
}  // namespace farsum
