// The epoch of a lock begins and ends with its word, and both stay where something fails.
#include "window/target_locks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "node_ranks.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

struct TargetLocksOf3 : testing::Test {
  bool others_can_lock(std::uint32_t target) const {
    return node.try_lock(2, target, LockMode::exclusive) && node.unlock(2, target, LockMode::exclusive);
  }
  std::vector<std::int32_t> only_1_is(std::int32_t word) const { return {no_epoch, word, no_epoch}; }

  SharedNode node{3, false};
  NodeRank mine{node, 0};
};

TEST_F(TargetLocksOf3, say_in_the_targets_word_how_it_is_held) {
  for (const auto& [mode, word] :
       {std::pair{LockMode::shared, locked_shared}, {LockMode::exclusive, locked_exclusive}}) {
    EXPECT_TRUE(is_fine(mine.locks.lock(1, mode)));
    EXPECT_EQ(mine.open_words(), only_1_is(word));
    EXPECT_FALSE(others_can_lock(1));
    EXPECT_TRUE(is_fine(mine.locks.unlock(1)));
    EXPECT_EQ(mine.open_words(), only_1_is(no_epoch));
    EXPECT_TRUE(others_can_lock(1));
  }
}

TEST_F(TargetLocksOf3, are_not_taken_twice) {
  ASSERT_TRUE(is_fine(mine.locks.lock(1, LockMode::shared)));
  const Status again = mine.locks.lock(1, LockMode::exclusive);
  EXPECT_EQ(again.code(), Code::sync);
  EXPECT_THAT(again.text(), HasSubstr(epoch_says::held_already));
  EXPECT_EQ(mine.locks.lock_unchecked(1).code(), Code::sync);
  EXPECT_EQ(mine.open_words(), only_1_is(locked_shared));
  EXPECT_TRUE(is_fine(mine.locks.unlock(1)));
  EXPECT_TRUE(others_can_lock(1));
}

TEST_F(TargetLocksOf3, are_refused_outside_the_group_and_where_none_is_held) {
  EXPECT_EQ(mine.locks.lock(3, LockMode::shared).code(), Code::rank);
  EXPECT_EQ(mine.locks.lock_unchecked(3).code(), Code::rank);
  EXPECT_EQ(mine.locks.unlock(3).code(), Code::rank);
  EXPECT_THAT(mine.locks.unlock(1).text(), HasSubstr("this rank does not hold that lock; farsum_lock takes it"));
  mine.words.set(1, active_epoch);
  EXPECT_EQ(mine.locks.unlock(1).code(), Code::sync);
  EXPECT_EQ(mine.open_words(), only_1_is(active_epoch));
}

TEST_F(TargetLocksOf3, end_a_fence_in_which_nothing_was_issued_and_no_other) {
  ASSERT_TRUE(mine.rules.set_fence(true));
  mine.rules.note_issued();
  EXPECT_THAT(mine.locks.lock(1, LockMode::shared).text(), HasSubstr(epoch_says::fence_used));
  EXPECT_EQ(mine.open_words(), mine.all_are(active_epoch));
  EXPECT_TRUE(others_can_lock(1));
  mine.rules.note_fence();
  EXPECT_TRUE(is_fine(mine.locks.lock(1, LockMode::shared)));
  EXPECT_EQ(mine.open_words(), only_1_is(locked_shared));
}

TEST_F(TargetLocksOf3, allow_no_operation_while_they_are_waited_for) {
  ASSERT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
  mine.waiter.then([&] {
    EXPECT_EQ(mine.open_words(), only_1_is(epoch_changing));
    EXPECT_TRUE(mine.rules.mutex().try_lock()) << "another thread may have to end an epoch";
    mine.rules.mutex().unlock();
    EXPECT_TRUE(node.unlock(2, 1, LockMode::exclusive));
  });
  EXPECT_TRUE(is_fine(mine.locks.lock(1, LockMode::shared)));
  EXPECT_EQ(mine.open_words(), only_1_is(locked_shared));
}

TEST_F(TargetLocksOf3, leave_no_epoch_when_the_wait_fails) {
  ASSERT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
  EXPECT_EQ(mine.locks.lock(1, LockMode::shared).code(), Code::peer_failed);
  EXPECT_EQ(mine.open_words(), only_1_is(no_epoch));
}

TEST_F(TargetLocksOf3, may_have_been_queued_for_the_short_way) {
  for (const bool comes : {true, false}) {
    ASSERT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
    const Requested queued =
        mine.local.take_or_queue(1, LockMode::exclusive, [&] { return mine.words.claim(1, no_epoch); });
    ASSERT_EQ(queued.kind, Requested::Kind::queued);
    if (comes) mine.waiter.then([&] { EXPECT_TRUE(node.unlock(2, 1, LockMode::exclusive)); });
    EXPECT_EQ(mine.locks.await_queued(1, LockMode::exclusive, queued.slot).is_ok(), comes);
    EXPECT_EQ(mine.open_words(), only_1_is(comes ? locked_exclusive : no_epoch));
    EXPECT_EQ(mine.locks.unlock(1).is_ok(), comes);
  }
}

TEST_F(TargetLocksOf3, stay_held_when_an_operation_has_failed_until_the_next_unlock) {
  ASSERT_TRUE(is_fine(mine.locks.lock(1, LockMode::exclusive)));
  mine.fail_at(1);
  EXPECT_EQ(mine.locks.unlock(1).code(), Code::range);
  EXPECT_EQ(mine.open_words(), only_1_is(locked_exclusive));
  EXPECT_FALSE(others_can_lock(1));
  EXPECT_TRUE(is_fine(mine.locks.unlock(1)));
  EXPECT_TRUE(others_can_lock(1));
}

TEST_F(TargetLocksOf3, may_be_taken_again_after_an_unlock_that_found_nothing_to_give_back) {
  ASSERT_TRUE(is_fine(mine.locks.lock(1, LockMode::exclusive)));
  ASSERT_TRUE(node.unlock(0, 1, LockMode::exclusive)) << "behind its back";
  EXPECT_EQ(mine.locks.unlock(1).code(), Code::system);
  EXPECT_TRUE(is_fine(mine.locks.lock(1, LockMode::exclusive)));
}

TEST_F(TargetLocksOf3, that_are_unchecked_take_nothing_and_give_nothing_back) {
  ASSERT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
  EXPECT_TRUE(is_fine(mine.locks.lock_unchecked(1)));
  EXPECT_EQ(mine.open_words(), only_1_is(unchecked_lock));
  mine.fail_at(1);
  EXPECT_EQ(mine.locks.unlock(1).code(), Code::range);
  EXPECT_EQ(mine.open_words(), only_1_is(unchecked_lock));
  EXPECT_TRUE(is_fine(mine.locks.unlock(1)));
  EXPECT_EQ(mine.open_words(), only_1_is(no_epoch));
  EXPECT_EQ(node.holders(1), 1u);
}

TEST_F(TargetLocksOf3, of_mutexes_begin_no_epoch) {
  EXPECT_TRUE(is_fine(mine.locks.lock_mutex(1, 0)));
  EXPECT_EQ(mine.open_words(), only_1_is(no_epoch));
  EXPECT_TRUE(is_fine(mine.locks.lock_mutex(1, 1)));
  EXPECT_TRUE(is_fine(mine.locks.lock(1, LockMode::exclusive))) << "the part's own is another";
  EXPECT_FALSE(node.try_lock(2, 1, LockMode::exclusive, 2));
  EXPECT_TRUE(is_fine(mine.locks.unlock_mutex(1, 1)));
  EXPECT_TRUE(node.is_free(1, 2));
  EXPECT_FALSE(node.is_free(1, 1));
  EXPECT_EQ(mine.locks.unlock_mutex(1, 1).code(), Code::system);
}

TEST_F(TargetLocksOf3, let_a_word_be_claimed_only_where_no_epoch_is) {
  mine.words.set(0, locked_shared);
  EXPECT_FALSE(mine.locks.claim(0));
  EXPECT_TRUE(mine.locks.claim(1));
  EXPECT_FALSE(mine.locks.claim(1));
  EXPECT_EQ(mine.open_words(), (std::vector<std::int32_t>{locked_shared, epoch_changing, no_epoch}));
}

TEST_F(TargetLocksOf3, are_given_back_with_whatever_epoch_is_abandoned) {
  ASSERT_TRUE(is_fine(mine.locks.lock(0, LockMode::shared)));
  ASSERT_TRUE(is_fine(mine.locks.lock(1, LockMode::exclusive)));
  ASSERT_TRUE(node.try_lock(0, 2, LockMode::shared));
  mine.words.set(2, locked_with_all);
  for (std::uint32_t target = 0; target < 3; ++target) {
    mine.locks.abandon(target, "test");
    EXPECT_TRUE(others_can_lock(target)) << target;
  }
  EXPECT_EQ(mine.open_words(), mine.all_are(no_epoch));
}

TEST_F(TargetLocksOf3, are_not_given_back_with_an_abandoned_epoch_that_has_taken_none) {
  for (const std::int32_t word : {std::int32_t{active_epoch}, std::int32_t{unchecked_lock}}) {
    ASSERT_TRUE(node.try_lock(0, 1, LockMode::shared));
    mine.words.set(1, word);
    mine.locks.abandon(1, "test");
    EXPECT_EQ(mine.open_words(), only_1_is(no_epoch));
    EXPECT_TRUE(node.unlock(0, 1, LockMode::shared)) << "it was not this epoch's";
  }
}

TEST_F(TargetLocksOf3, go_to_one_thread_of_a_rank_at_a_time_and_the_others_are_told) {
  constexpr int threads = 4, rounds = 500;
  int written = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int done = 0; done < rounds;) {
        if (const Status status = mine.locks.lock(1, LockMode::exclusive); !status.is_ok()) {
          ASSERT_EQ(status.code(), Code::sync);
          std::this_thread::yield();
          continue;
        }
        ++written;
        ++done;
        ASSERT_TRUE(is_fine(mine.locks.unlock(1)));
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(written, threads * rounds);
}

}  // namespace
}  // namespace farsum
