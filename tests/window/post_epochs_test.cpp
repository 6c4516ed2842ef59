// Posts that are seen and used up, operations that are kept until one comes, and ends of epochs that fail first.
#include "window/post_epochs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "node_ranks.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Targets = std::vector<std::uint32_t>;

struct PostEpochsOf3 : testing::Test {
  PostEpochsOf3() {
    mine.carry_out = [this](const Operation& operation, std::uint32_t target) {
      EXPECT_EQ(mine.words.of(target), no_epoch) << "nothing may come before it";
      carried_out.push_back(operation.offset);
      return operation.offset == failing ? Status(Code::range, "it lies outside") : Status();
    };
  }

  static Operation operation_at(std::uint64_t offset) {
    Operation operation;
    operation.offset = offset;
    operation.bytes = 8;
    operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(8);
    return operation;
  }
  bool is_kept(std::uint64_t offset, std::uint32_t target = 1) {
    const PostEpochs::Kept kept = mine.posts.keep(operation_at(offset), target);
    return kept && kept->is_ok();
  }
  std::uint64_t completes(std::uint32_t target) const { return node.shared()[target].head().completes.load(); }
  bool is_done() {
    bool done = false;
    EXPECT_TRUE(is_fine(mine.posts.test(done)));
    return done;
  }

  SharedNode node{3, false};
  NodeRank mine{node, 0}, first{node, 1}, second{node, 2};
  std::vector<std::uint64_t> carried_out;  // by offset
  std::uint64_t failing = ~std::uint64_t{0};
  const Targets me = {0}, both = {1, 2}, only_1 = {1};
};

// ---- starts and posts ----

TEST_F(PostEpochsOf3, start_begins_at_once_where_the_post_is_there) {
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_THAT(first.woken, ElementsAre(node.ranks()[0]));
  EXPECT_TRUE(is_fine(mine.posts.start(both)));
  EXPECT_FALSE(mine.posts.awaits_post(1));
  EXPECT_TRUE(mine.posts.awaits_post(2));
  EXPECT_EQ(mine.open_words(), (std::vector<std::int32_t>{no_epoch, active_epoch, no_epoch}));
  ASSERT_TRUE(is_fine(second.posts.post(me)));
  EXPECT_TRUE(is_fine(mine.posts.await_post(2, "test")));
  EXPECT_FALSE(mine.posts.awaits_post(2));
  EXPECT_EQ(mine.open_words(), (std::vector<std::int32_t>{no_epoch, active_epoch, active_epoch}));
}

TEST_F(PostEpochsOf3, start_uses_one_post_up) {
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  ASSERT_TRUE(is_fine(mine.posts.complete()));
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  EXPECT_TRUE(mine.posts.awaits_post(1));
  ASSERT_TRUE(is_fine(first.posts.wait()));
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_TRUE(is_fine(mine.posts.complete()));
}

TEST_F(PostEpochsOf3, start_that_does_not_look_uses_up_the_post_that_is_still_to_come) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1, PostEpochs::Posts::known)));
  EXPECT_FALSE(mine.posts.awaits_post(1));
  EXPECT_EQ(mine.words.of(1), active_epoch);
  ASSERT_TRUE(is_fine(mine.posts.complete()));
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  EXPECT_TRUE(mine.posts.awaits_post(1)) << "there is one post less than starts";
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_EQ(mine.posts.await_post(1, "test").code(), Code::peer_failed) << "that post was used up";
  ASSERT_TRUE(is_fine(first.posts.wait()));
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_TRUE(is_fine(mine.posts.await_post(1, "test")));
}

TEST_F(PostEpochsOf3, hears_of_the_others_when_a_post_was_waited_for) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  const std::uint64_t before = mine.hearing.times();
  mine.waiter.then([&] { EXPECT_TRUE(is_fine(first.posts.post(me))); });
  EXPECT_TRUE(is_fine(mine.posts.await_post(1, "test")));
  EXPECT_EQ(mine.hearing.times(), before + 1);
  EXPECT_TRUE(is_fine(mine.posts.await_post(1, "test"))) << "it has come";
  EXPECT_EQ(mine.hearing.times(), before + 1);
}

TEST_F(PostEpochsOf3, refuse_what_does_not_nest) {
  EXPECT_THAT(mine.posts.complete().text(), HasSubstr("no farsum_start precedes it"));
  EXPECT_THAT(mine.posts.wait().text(), HasSubstr("no farsum_post precedes it"));
  bool done = false;
  EXPECT_EQ(mine.posts.test(done).code(), Code::sync);
  ASSERT_TRUE(is_fine(mine.posts.start(only_1, PostEpochs::Posts::known)));
  EXPECT_EQ(mine.posts.start(both).code(), Code::sync);
  EXPECT_FALSE(mine.posts.awaits_post(2));
  ASSERT_TRUE(is_fine(mine.posts.post(only_1)));
  EXPECT_EQ(mine.posts.post(both).code(), Code::sync);
  EXPECT_EQ(node.shared()[1].posts()[0].load(), 1u) << "it has not told anybody";
  EXPECT_EQ(node.shared()[2].posts()[0].load(), 0u);
}

TEST(PostEpochs, name_ranks_of_the_group_and_each_once) {
  const SharedNode node(20, false);
  NodeRank mine(node, 0);
  Targets many(20);
  std::iota(many.begin(), many.end(), 0u);
  many.push_back(7);
  for (const Targets& twice : {Targets{1, 2, 1}, many}) {
    const Status status = mine.posts.start(twice);
    EXPECT_EQ(status.code(), Code::argument);
    EXPECT_THAT(status.text(), HasSubstr("is listed twice"));
    EXPECT_EQ(mine.posts.post(twice).code(), Code::argument);
  }
  EXPECT_EQ(mine.posts.start(Targets{1, 20}).code(), Code::rank);
  EXPECT_FALSE(mine.posts.awaits_post(1));
  many.pop_back();
  EXPECT_TRUE(is_fine(mine.posts.start(many)));
  EXPECT_TRUE(is_fine(mine.posts.post(many)));
}

// ---- operations before the post ----

TEST_F(PostEpochsOf3, carry_out_in_their_order_what_was_kept_before_anything_else) {
  ASSERT_TRUE(is_fine(mine.posts.start(both)));
  for (const std::uint64_t offset : {16, 0, 8}) EXPECT_TRUE(is_kept(offset));
  EXPECT_TRUE(is_kept(24, 2));
  mine.waiter.then([&] {
    EXPECT_TRUE(carried_out.empty());
    EXPECT_TRUE(is_fine(first.posts.post(me)));
  });
  EXPECT_TRUE(is_fine(mine.posts.await_post(1, "test")));
  EXPECT_THAT(carried_out, ElementsAre(16, 0, 8));
  EXPECT_EQ(mine.words.of(1), active_epoch);
  EXPECT_TRUE(mine.posts.awaits_post(2));
}

TEST_F(PostEpochsOf3, keep_nothing_that_need_not_be_kept_or_costs_too_much) {
  EXPECT_FALSE(mine.posts.keep(operation_at(0), 1)) << "no epoch";
  ASSERT_TRUE(is_fine(mine.posts.start(both)));
  Operation swap = operation_at(0);
  swap.kind = OperationKind::compare_and_swap;
  EXPECT_FALSE(mine.posts.keep(swap, 1)) << "its answer is waited for";
  std::vector<ops::Piece> pieces(257);
  Operation scattered = operation_at(0);
  scattered.target_layout = ops::LayoutView::indexed(pieces);
  EXPECT_FALSE(mine.posts.keep(scattered, 1));
  pieces.pop_back();
  scattered.target_layout = ops::LayoutView::indexed(pieces);
  EXPECT_TRUE(mine.posts.keep(scattered, 1));
  for (int kept = 1; kept < 32; ++kept) ASSERT_TRUE(is_kept(8));
  EXPECT_FALSE(mine.posts.keep(operation_at(0), 1)) << "there are 32";
  EXPECT_TRUE(is_kept(0, 2)) << "of that target";
  ASSERT_TRUE(is_fine(second.posts.post(me)));
  EXPECT_FALSE(mine.posts.keep(operation_at(0), 2)) << "it has posted";
}

TEST_F(PostEpochsOf3, keep_nothing_where_regions_come_with_the_post) {
  NodeRank dynamic(node, 0, {.defers = false});
  ASSERT_TRUE(is_fine(dynamic.posts.start(only_1)));
  EXPECT_FALSE(dynamic.posts.keep(operation_at(0), 1));
}

TEST_F(PostEpochsOf3, keep_nothing_that_is_wrong) {
  mine.check = [](const Operation& operation, std::uint32_t) {
    return operation.offset == 8 ? Status(Code::alignment, "wrong") : Status();
  };
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  EXPECT_TRUE(is_kept(0));
  const PostEpochs::Kept kept = mine.posts.keep(operation_at(8), 1);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->code(), Code::alignment);
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_THAT(carried_out, ElementsAre(0));
}

TEST_F(PostEpochsOf3, keep_what_an_operation_borrows_until_the_call_returns) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  std::int64_t alpha = 5;
  std::vector<std::uint64_t> counts = {3};
  std::vector<std::int64_t> strides = {16};
  Operation operation = operation_at(0);
  operation.type = ops::ElementType::int64;
  operation.alpha = &alpha;
  operation.target_layout = ops::LayoutView::strided(8, counts, strides);
  ASSERT_TRUE(mine.posts.keep(operation, 1));
  alpha = 6;
  counts = {1};
  strides = {8};
  mine.carry_out = [&](const Operation& kept, std::uint32_t) {
    std::int64_t kept_alpha = 0;
    std::memcpy(&kept_alpha, kept.alpha, sizeof kept_alpha);
    EXPECT_EQ(kept_alpha, 5);
    EXPECT_EQ(kept.target_layout.total_bytes(), 24u);
    carried_out.push_back(kept.offset);
    return Status();
  };
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_TRUE(is_fine(mine.posts.await_post(1, "test")));
  EXPECT_EQ(carried_out.size(), 1u);
}

TEST_F(PostEpochsOf3, tell_once_of_what_was_kept_and_fails) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  for (const std::uint64_t offset : {0, 8, 16}) ASSERT_TRUE(is_kept(offset));
  failing = 8;
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_EQ(mine.posts.await_post(1, "test").code(), Code::range);
  EXPECT_THAT(carried_out, ElementsAre(0, 8, 16));
  EXPECT_EQ(mine.words.of(1), active_epoch);
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_EQ(carried_out.size(), 3u);
  EXPECT_EQ(completes(1), 1u);
}

// ---- ends ----

TEST_F(PostEpochsOf3, complete_waits_for_the_posts_and_tells_every_target_once) {
  ASSERT_TRUE(is_fine(mine.posts.start(both)));
  ASSERT_TRUE(is_kept(8, 2));
  mine.waiter.then([&] {
    EXPECT_TRUE(mine.rules.mutex().try_lock()) << "another thread may have to post";
    mine.rules.mutex().unlock();
    EXPECT_TRUE(is_fine(second.posts.post(me)));
    EXPECT_TRUE(is_fine(first.posts.post(me)));
    EXPECT_EQ(completes(1) + completes(2), 0u);
  });
  mine.carry_out = [&](const Operation&, std::uint32_t target) {
    carried_out.push_back(target);
    return Status();
  };
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_THAT(carried_out, ElementsAre(2));
  EXPECT_EQ(completes(1), 1u);
  EXPECT_EQ(completes(2), 1u);
  EXPECT_THAT(mine.woken, ElementsAre(node.ranks()[1], node.ranks()[2]));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_EQ(mine.posts.complete().code(), Code::sync);
}

TEST_F(PostEpochsOf3, complete_tells_no_target_before_a_second_try_where_an_operation_has_failed) {
  ASSERT_TRUE(is_fine(mine.posts.start(both, PostEpochs::Posts::known)));
  mine.fail_at(2);
  EXPECT_EQ(mine.posts.complete().code(), Code::range);
  EXPECT_TRUE(mine.rules.is(epoch_started));
  EXPECT_EQ(mine.words.of(1), active_epoch);
  EXPECT_EQ(completes(1) + completes(2), 0u);
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_FALSE(mine.rules.is(epoch_started));
  EXPECT_EQ(completes(1), 1u);
  EXPECT_EQ(completes(2), 1u);
}

TEST_F(PostEpochsOf3, complete_ends_at_the_second_try_where_a_post_does_not_come) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  ASSERT_TRUE(is_kept(0));
  const Status first_try = mine.posts.complete();
  EXPECT_EQ(first_try.code(), Code::peer_failed);
  EXPECT_THAT(first_try.text(), HasSubstr("farsum_complete"));
  EXPECT_TRUE(mine.rules.is(epoch_started));
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_TRUE(carried_out.empty());
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
}

TEST_F(PostEpochsOf3, complete_tells_of_what_was_kept_and_fails_and_ends_at_the_second_try) {
  ASSERT_TRUE(is_fine(mine.posts.start(only_1)));
  ASSERT_TRUE(is_kept(8));
  failing = 8;
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  EXPECT_EQ(mine.posts.complete().code(), Code::range);
  EXPECT_EQ(completes(1), 0u);
  EXPECT_TRUE(is_fine(mine.posts.complete()));
  EXPECT_THAT(carried_out, ElementsAre(8));
  EXPECT_EQ(completes(1), 1u);
}

TEST_F(PostEpochsOf3, that_are_abandoned_carry_out_what_has_a_post_and_drop_the_rest) {
  ASSERT_TRUE(is_fine(mine.posts.start(both)));
  ASSERT_TRUE(is_kept(8, 1));
  ASSERT_TRUE(is_kept(16, 2));
  ASSERT_TRUE(is_fine(first.posts.post(me)));
  mine.fail_at(1);
  mine.posts.abandon("test");
  EXPECT_THAT(carried_out, ElementsAre(8));
  EXPECT_FALSE(mine.posts.awaits_post(2));
  EXPECT_FALSE(mine.rules.is(epoch_started));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_EQ(completes(1), 1u) << "though an operation has failed";
  mine.posts.abandon("test");
  EXPECT_EQ(completes(1), 1u) << "nothing is open any more";
}

TEST_F(PostEpochsOf3, exposure_lasts_until_every_origin_has_completed) {
  const Targets others = {1, 2};
  ASSERT_TRUE(is_fine(mine.posts.post(others)));
  for (NodeRank* origin : {&first, &second}) {
    EXPECT_FALSE(is_done());
    ASSERT_TRUE(is_fine(origin->posts.start(me)));
    ASSERT_TRUE(is_fine(origin->posts.complete()));
  }
  EXPECT_TRUE(is_done());
  EXPECT_FALSE(mine.rules.is(epoch_exposed));
  // The next is not over by the completes of the last.
  ASSERT_TRUE(is_fine(mine.posts.post(only_1)));
  mine.waiter.then([&] {
    EXPECT_TRUE(is_fine(first.posts.start(me)));
    EXPECT_TRUE(is_fine(first.posts.complete()));
  });
  EXPECT_TRUE(is_fine(mine.posts.wait()));
  EXPECT_TRUE(mine.waiter.is_at_the_end());
  EXPECT_FALSE(mine.rules.is(epoch_exposed));
}

TEST_F(PostEpochsOf3, exposure_stays_when_the_wait_fails) {
  ASSERT_TRUE(is_fine(mine.posts.post(only_1)));
  EXPECT_EQ(mine.posts.wait().code(), Code::peer_failed);
  EXPECT_TRUE(mine.rules.is(epoch_exposed));
  mine.waiter.somebody_is_dead = true;
  bool done = true;
  EXPECT_EQ(mine.posts.test(done).code(), Code::peer_failed);
  EXPECT_FALSE(done);
  EXPECT_TRUE(mine.rules.is(epoch_exposed));
}

}  // namespace
}  // namespace farsum
