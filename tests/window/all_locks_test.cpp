// Locks of all targets: by bias where that is offered, else one by one, and none where not all can be had.
#include "window/all_locks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "node_ranks.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

bool can_be_locked(const SharedNode& node, std::uint32_t by, std::uint32_t target) {
  return node.try_lock(by, target, LockMode::exclusive) && node.unlock(by, target, LockMode::exclusive);
}
std::vector<std::uint32_t> held_of(const SharedNode& node) {
  std::vector<std::uint32_t> held;
  for (std::uint32_t target = 0; target < node.size(); ++target) held.push_back(node.holders(target));
  return held;
}
using Counts = std::vector<std::uint32_t>;
using OpenWords = std::vector<std::int32_t>;

// ---- by bias ----

struct BiasedLocksOf3 : testing::Test {
  // By whom the bias is ended, who waits behind the holders or has the lock.
  void end_bias(std::uint32_t target) { (void)node.queue(2, target, LockMode::exclusive); }
  void note_locked_one_by_one(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) mine.biased.note_locked_one_by_one();
  }
  bool is_offered() const { return node.shared()[0].bias().is_offered(); }

  SharedNode node{3, true};
  NodeRank mine{node, 0};
};

TEST_F(BiasedLocksOf3, hold_all_and_keep_exclusive_ones_out_until_they_are_dropped) {
  EXPECT_TRUE(mine.biased.hold());
  EXPECT_TRUE(mine.biased.are_held());
  EXPECT_EQ(mine.open_words(), mine.all_are(locked_with_all));
  const Requested requested = node.queue(1, 2, LockMode::exclusive);
  EXPECT_EQ(requested.kind, Requested::Kind::queued);
  mine.biased.drop();
  EXPECT_FALSE(mine.biased.are_held());
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_TRUE(node.unlock(1, 2, LockMode::exclusive)) << "it was granted";
}

TEST_F(BiasedLocksOf3, are_held_by_several_ranks) {
  NodeRank other(node, 1);
  EXPECT_TRUE(mine.biased.hold());
  EXPECT_TRUE(other.biased.hold());
  mine.biased.drop();
  ASSERT_EQ(node.queue(2, 0, LockMode::exclusive).kind, Requested::Kind::queued);
  other.biased.drop();
  EXPECT_TRUE(node.unlock(2, 0, LockMode::exclusive));
}

TEST_F(BiasedLocksOf3, are_not_held_where_a_word_is_another_epochs) {
  mine.words.set(1, locked_shared);
  EXPECT_FALSE(mine.biased.hold());
  EXPECT_FALSE(mine.biased.are_held());
  EXPECT_EQ(mine.open_words(), (OpenWords{no_epoch, locked_shared, no_epoch}));
  EXPECT_EQ(held_of(node), (Counts{0, 0, 0}));
}

TEST_F(BiasedLocksOf3, are_not_held_once_somebody_has_ended_the_offer) {
  ASSERT_TRUE(can_be_locked(node, 1, 2));
  EXPECT_FALSE(is_offered());
  EXPECT_FALSE(mine.biased.hold());
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
}

TEST_F(BiasedLocksOf3, that_were_ended_meanwhile_leave_every_lock_when_they_are_dropped) {
  ASSERT_TRUE(mine.biased.hold());
  for (const std::uint32_t target : {0u, 2u})
    ASSERT_EQ(node.queue(2, target, LockMode::exclusive).kind, Requested::Kind::queued);
  mine.biased.drop();
  for (const std::uint32_t target : {0u, 2u}) EXPECT_TRUE(node.unlock(2, target, LockMode::exclusive));
  for (std::uint32_t target = 0; target < 3; ++target) EXPECT_TRUE(can_be_locked(node, 1, target));
}

// A thread of this rank has found the word free before all were held, and written it after.
TEST_F(BiasedLocksOf3, leave_the_lock_of_another_thread) {
  ASSERT_TRUE(mine.biased.hold());
  end_bias(2);
  ASSERT_TRUE(node.try_lock(0, 1, LockMode::shared));
  mine.words.set(1, locked_shared);
  mine.biased.drop();
  EXPECT_EQ(mine.open_words(), (OpenWords{no_epoch, locked_shared, no_epoch}));
  EXPECT_FALSE(can_be_locked(node, 1, 1));
  EXPECT_TRUE(is_fine(mine.locks.unlock(1)));
  EXPECT_TRUE(can_be_locked(node, 1, 1));
}

TEST_F(BiasedLocksOf3, are_offered_again_after_some_that_were_locked_one_by_one) {
  ASSERT_TRUE(can_be_locked(node, 1, 2));
  for (std::uint32_t target = 0; target < 3; ++target) ASSERT_TRUE(node.try_lock(0, target, LockMode::shared));
  note_locked_one_by_one(OfferPace::shortest - 1);
  EXPECT_FALSE(is_offered());
  note_locked_one_by_one(1);
  EXPECT_TRUE(is_offered());
  for (std::uint32_t target = 0; target < 3; ++target) ASSERT_TRUE(node.unlock(0, target, LockMode::shared));
  NodeRank other(node, 1);
  EXPECT_TRUE(other.biased.hold());
  EXPECT_EQ(node.queue(2, 1, LockMode::exclusive).kind, Requested::Kind::queued);
}

TEST_F(BiasedLocksOf3, are_not_offered_while_somebody_waits_for_one_and_later_are) {
  ASSERT_TRUE(can_be_locked(node, 1, 2));
  for (std::uint32_t target = 0; target < 3; ++target) ASSERT_TRUE(node.try_lock(0, target, LockMode::shared));
  ASSERT_EQ(node.queue(1, 1, LockMode::exclusive).kind, Requested::Kind::queued);
  note_locked_one_by_one(OfferPace::shortest);
  EXPECT_FALSE(is_offered());
  ASSERT_TRUE(node.unlock(0, 1, LockMode::shared));
  ASSERT_TRUE(node.unlock(1, 1, LockMode::exclusive));
  ASSERT_TRUE(node.try_lock(0, 1, LockMode::shared));
  note_locked_one_by_one(2 * OfferPace::shortest);
  EXPECT_TRUE(is_offered());
}

TEST(BiasedLocks, are_never_held_where_there_is_no_bias) {
  const SharedNode node(2, false);
  NodeRank mine(node, 0);
  EXPECT_FALSE(mine.biased.hold());
  for (std::uint32_t i = 0; i < 2 * OfferPace::shortest; ++i) mine.biased.note_locked_one_by_one();
  EXPECT_FALSE(mine.biased.hold());
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
}

// ---- one by one ----

struct AllLocksOf4 : testing::Test {
  SharedNode node{4, false};
  NodeRank mine{node, 0};
};

TEST_F(AllLocksOf4, hold_every_target_shared) {
  ASSERT_TRUE(node.try_lock(1, 2, LockMode::shared));
  EXPECT_TRUE(is_fine(mine.all.lock()));
  EXPECT_TRUE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), mine.all_are(locked_with_all));
  EXPECT_EQ(held_of(node), (Counts{1, 1, 2, 1}));
  EXPECT_EQ(mine.all.lock().code(), Code::sync) << "not twice";
  EXPECT_TRUE(is_fine(mine.all.unlock()));
  EXPECT_FALSE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_EQ(held_of(node), (Counts{0, 0, 1, 0}));
  EXPECT_EQ(mine.all.unlock().code(), Code::sync);
}

TEST_F(AllLocksOf4, are_not_taken_by_a_rank_that_holds_one) {
  ASSERT_TRUE(is_fine(mine.locks.lock(2, LockMode::shared)));
  EXPECT_THAT(mine.all.lock().text(), HasSubstr(epoch_says::others_held));
  EXPECT_THAT(mine.all.lock_unchecked().text(), HasSubstr(epoch_says::others_held));
  EXPECT_EQ(mine.open_words(), (OpenWords{no_epoch, no_epoch, locked_shared, no_epoch}));
  EXPECT_EQ(held_of(node), (Counts{0, 0, 1, 0}));
}

// The rules may have found the word free that another thread has got since.
TEST_F(AllLocksOf4, give_back_what_was_free_before_a_word_that_is_another_epochs) {
  mine.words.set(2, active_epoch);
  EXPECT_THAT(mine.all.lock().text(), HasSubstr(epoch_says::others_held));
  EXPECT_FALSE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), (OpenWords{no_epoch, no_epoch, active_epoch, no_epoch}));
  EXPECT_EQ(held_of(node), (Counts{0, 0, 0, 0}));
  EXPECT_THAT(mine.all.lock_unchecked().text(), HasSubstr(epoch_says::others_held));
  EXPECT_EQ(mine.open_words(), (OpenWords{no_epoch, no_epoch, active_epoch, no_epoch}));
}

TEST_F(AllLocksOf4, hold_nothing_behind_the_target_that_they_wait_for) {
  ASSERT_TRUE(node.try_lock(3, 1, LockMode::exclusive));
  mine.waiter.then([&] {
    EXPECT_EQ(held_of(node), (Counts{1, 1, 0, 0}));
    EXPECT_TRUE(mine.rules.mutex().try_lock()) << "another thread may have to end an epoch";
    mine.rules.mutex().unlock();
    EXPECT_TRUE(node.try_lock(2, 3, LockMode::exclusive));
    EXPECT_TRUE(node.unlock(3, 1, LockMode::exclusive));
  });
  // What another has got meanwhile is waited for next, and what comes before stays.
  mine.waiter.then([&] {
    EXPECT_EQ(held_of(node), (Counts{1, 1, 1, 1}));
    EXPECT_EQ(mine.open_words(), (OpenWords{locked_with_all, locked_with_all, locked_with_all, epoch_changing}));
    EXPECT_TRUE(node.unlock(2, 3, LockMode::exclusive));
  });
  EXPECT_TRUE(is_fine(mine.all.lock()));
  EXPECT_TRUE(mine.waiter.is_at_the_end());
  EXPECT_EQ(mine.open_words(), mine.all_are(locked_with_all));
  for (std::uint32_t target = 0; target < 4; ++target) EXPECT_FALSE(can_be_locked(node, 1, target));
}

TEST_F(AllLocksOf4, hold_none_when_the_wait_fails) {
  ASSERT_TRUE(node.try_lock(3, 1, LockMode::exclusive));
  EXPECT_EQ(mine.all.lock().code(), Code::peer_failed);
  EXPECT_FALSE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_EQ(held_of(node), (Counts{0, 1, 0, 0}));
}

TEST_F(AllLocksOf4, that_are_unchecked_take_nothing_and_give_nothing_back) {
  ASSERT_TRUE(node.try_lock(3, 1, LockMode::exclusive));
  EXPECT_TRUE(is_fine(mine.all.lock_unchecked()));
  EXPECT_EQ(mine.open_words(), mine.all_are(unchecked_with_all));
  EXPECT_TRUE(mine.rules.is(epoch_all_locked));
  mine.fail_at(2);
  EXPECT_EQ(mine.all.unlock().code(), Code::range);
  EXPECT_EQ(mine.open_words(), mine.all_are(unchecked_with_all));
  EXPECT_TRUE(is_fine(mine.all.unlock()));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_FALSE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(held_of(node), (Counts{0, 1, 0, 0}));
}

TEST_F(AllLocksOf4, end_a_fence_in_which_nothing_was_issued) {
  ASSERT_TRUE(mine.rules.set_fence(true));
  EXPECT_TRUE(is_fine(mine.all.lock()));
  EXPECT_FALSE(mine.rules.is(epoch_fence));
  EXPECT_EQ(mine.open_words(), mine.all_are(locked_with_all));
}

class AllLocksByEachWay : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutBias, AllLocksByEachWay, testing::Bool());

TEST_P(AllLocksByEachWay, stay_held_when_an_operation_has_failed_until_the_next_unlock) {
  const SharedNode node(3, GetParam());
  NodeRank mine(node, 0);
  ASSERT_TRUE(is_fine(mine.all.lock()));
  EXPECT_EQ(mine.biased.are_held(), GetParam());
  mine.fail_at(1);
  EXPECT_EQ(mine.all.unlock().code(), Code::range);
  EXPECT_TRUE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), mine.all_are(locked_with_all));
  EXPECT_EQ(held_of(node), (Counts{1, 1, 1}));
  EXPECT_TRUE(is_fine(mine.all.unlock()));
  EXPECT_FALSE(mine.rules.is(epoch_all_locked));
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
  EXPECT_EQ(held_of(node), (Counts{0, 0, 0}));
}

TEST_P(AllLocksByEachWay, find_their_way_back_to_the_bias) {
  const SharedNode node(3, GetParam());
  NodeRank mine(node, 0);
  ASSERT_TRUE(can_be_locked(node, 1, 2));
  for (std::uint32_t i = 0; i < OfferPace::shortest; ++i) {
    ASSERT_TRUE(is_fine(mine.all.lock()));
    EXPECT_FALSE(mine.biased.are_held());
    ASSERT_TRUE(is_fine(mine.all.unlock()));
  }
  ASSERT_TRUE(is_fine(mine.all.lock()));
  EXPECT_EQ(mine.biased.are_held(), GetParam());
  EXPECT_FALSE(can_be_locked(node, 1, 1));
  EXPECT_TRUE(is_fine(mine.all.unlock()));
}

}  // namespace
}  // namespace farsum
