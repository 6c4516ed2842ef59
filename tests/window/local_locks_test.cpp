// Locks of targets of one node: who holds one, who is queued, and what becomes of a wait that fails.
#include "window/local_locks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "node_ranks.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

class DeadRank final : public Liveness {
 public:
  explicit DeadRank(std::uint32_t rank) : rank_(rank) {}
  bool is_dead(std::uint32_t rank) const override { return rank == rank_; }
  std::uint32_t declare_dead(std::uint32_t rank) const override { return rank; }

 private:
  std::uint32_t rank_;
};

class NotedRings final : public Ringer {
 public:
  void ring(std::uint32_t owner) const override { owners.push_back(owner); }
  mutable std::vector<std::uint32_t> owners;
};

TEST(LocalLocks, are_shared_or_held_alone) {
  const SharedNode node(3, false);
  NodeRank mine(node, 0);
  EXPECT_TRUE(is_fine(mine.local.take(1, LockMode::shared, "test")));
  EXPECT_FALSE(node.try_lock(1, 1, LockMode::exclusive));
  EXPECT_TRUE(node.try_lock(1, 1, LockMode::shared));
  EXPECT_TRUE(node.try_lock(1, 2, LockMode::exclusive)) << "another target's";
  EXPECT_TRUE(is_fine(mine.local.give_back(1, LockMode::shared, "test")));
  EXPECT_EQ(node.holders(1), 1u);
}

TEST(LocalLocks, of_mutexes_are_others_than_the_parts) {
  const SharedNode node(2, false);
  NodeRank mine(node, 0);
  EXPECT_TRUE(is_fine(mine.local.take(1, LockMode::exclusive, "test", 2)));
  EXPECT_TRUE(node.is_free(1, 0));
  EXPECT_TRUE(node.is_free(1, 1));
  EXPECT_FALSE(node.try_lock(1, 1, LockMode::exclusive, 2));
  EXPECT_TRUE(is_fine(mine.local.give_back(1, LockMode::exclusive, "test", 2)));
  EXPECT_TRUE(node.is_free(1, 2));
}

TEST(LocalLocks, are_neither_taken_nor_queued_for_where_the_caller_may_not) {
  const SharedNode node(3, false);
  NodeRank mine(node, 0);
  const auto may_not = [] { return false; };
  EXPECT_EQ(mine.local.take_or_queue(1, LockMode::exclusive, may_not).kind, Requested::Kind::refused);
  ASSERT_TRUE(node.try_lock(1, 1, LockMode::exclusive));
  EXPECT_EQ(mine.local.take_or_queue(1, LockMode::exclusive, may_not).kind, Requested::Kind::refused);
  ASSERT_TRUE(node.unlock(1, 1, LockMode::exclusive));
  EXPECT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
}

TEST(LocalLocks, are_waited_for_until_they_are_granted) {
  const SharedNode node(2, false);
  NodeRank mine(node, 0);
  ASSERT_TRUE(node.try_lock(1, 1, LockMode::exclusive));
  const Requested requested = mine.local.take_or_queue(1, LockMode::exclusive, [] { return true; });
  ASSERT_EQ(requested.kind, Requested::Kind::queued);
  mine.waiter.then([&] { EXPECT_TRUE(node.unlock(1, 1, LockMode::exclusive)); });
  EXPECT_TRUE(is_fine(mine.local.await(1, requested, "test")));
  EXPECT_TRUE(mine.waiter.is_at_the_end());
  EXPECT_FALSE(node.try_lock(1, 1, LockMode::shared));
  EXPECT_TRUE(is_fine(mine.local.give_back(1, LockMode::exclusive, "test")));
}

TEST(LocalLocks, leave_the_queue_when_the_wait_fails) {
  const SharedNode node(3, false);
  NodeRank mine(node, 0);
  ASSERT_TRUE(node.try_lock(1, 1, LockMode::exclusive));
  const Status status = mine.local.take(1, LockMode::exclusive, "farsum_lock");
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_EQ(status.text(), "farsum_lock: window 3, rank 1: farsum_lock: nothing happens any more");
  ASSERT_TRUE(node.unlock(1, 1, LockMode::exclusive));
  EXPECT_TRUE(node.try_lock(2, 1, LockMode::exclusive));
}

TEST(LocalLocks, name_the_dead_who_hold_what_is_waited_for) {
  const SharedNode node(3, false);
  const DeadRank dead(2);
  NodeRank mine(node, 0, {.liveness = &dead});
  ASSERT_TRUE(node.try_lock(2, 1, LockMode::shared));
  ASSERT_TRUE(node.try_lock(1, 1, LockMode::shared));
  const Status status = mine.local.take(1, LockMode::exclusive, "farsum_lock");
  EXPECT_THAT(status.text(), HasSubstr("; rank 2 of the job died while it held it shared"));
  EXPECT_THAT(status.text(), Not(HasSubstr("rank 1 of the job")));
}

TEST(LocalLocks, say_when_the_queue_is_full) {
  const SharedNode node(2, false);
  NodeRank mine(node, 0);
  EXPECT_THAT(mine.local.await(1, {.kind = Requested::Kind::full}, "farsum_lock").text(),
              HasSubstr("rank 1: the lock's queue is full"));
}

TEST(LocalLocks, that_are_not_held_are_not_given_back) {
  const SharedNode node(2, false);
  NodeRank mine(node, 0);
  ASSERT_TRUE(node.try_lock(1, 1, LockMode::exclusive));
  EXPECT_THAT(mine.local.give_back(1, LockMode::exclusive, "farsum_unlock").text(),
              HasSubstr("rank 1: the lock is not held in shared memory"));
  EXPECT_FALSE(node.is_free(1)) << "another's stays";
  ASSERT_TRUE(node.unlock(1, 1, LockMode::exclusive));
  ASSERT_TRUE(is_fine(mine.local.take(1, LockMode::shared, "test")));
  EXPECT_EQ(mine.local.give_back(1, LockMode::exclusive, "test").code(), Code::system) << "held in another mode";
}

TEST(LocalLocks, ring_the_target_once_its_agent_is_granted_one_for_another_node) {
  const SharedNode node(3, false);
  const NotedRings rings;
  NodeRank mine(node, 0, {.ringer = &rings});
  ASSERT_TRUE(is_fine(mine.local.take(1, LockMode::exclusive, "test")));
  ASSERT_EQ(node.view(1).request(2, SharedNode::contender(2), LockMode::exclusive).kind, Requested::Kind::queued);
  EXPECT_TRUE(rings.owners.empty());
  EXPECT_TRUE(is_fine(mine.local.give_back(1, LockMode::exclusive, "test")));
  EXPECT_EQ(rings.owners, std::vector<std::uint32_t>{node.ranks()[1]});
}

}  // namespace
}  // namespace farsum
