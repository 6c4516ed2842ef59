// Statistics, of the parts that count.
#include "runtime/rank_counts.hpp"

#include "lone_rank.hpp"

namespace farsum::test {
namespace {

class RankCountsTest : public testing::Test {
 protected:
  RankStatistics read(const Traffic& hot) {
    return counts.read({rank.engine, rank.desk, rank.transport, rank.waiter, copies, rank.agent, rank.network}, hot);
  }

  LoneRank rank;
  ReadCopies copies;
  RankCounts counts;
};

TEST_F(RankCountsTest, are_nought_of_a_rank_that_has_done_nothing) {
  const RankStatistics statistics = read({});
  for (std::size_t path = 0; path < path_count; ++path) EXPECT_EQ(statistics.operations[path], 0u);
  EXPECT_EQ(statistics.messages_sent, 0u);
  EXPECT_EQ(statistics.agent_wakeups, 0u) << "no agent runs";
  EXPECT_EQ(statistics.stripe_contention, 0u);
}

TEST_F(RankCountsTest, count_what_hot_views_did_as_direct) {
  counts.paths().count(Path::direct, 8);
  counts.paths().count(Path::owner, 100);
  counts.stripe_contention() = 3;
  const RankStatistics statistics = read({.operations = 5, .bytes = 40});
  EXPECT_EQ(statistics.operations[static_cast<std::size_t>(Path::direct)], 6u);
  EXPECT_EQ(statistics.bytes[static_cast<std::size_t>(Path::direct)], 48u);
  EXPECT_EQ(statistics.operations[static_cast<std::size_t>(Path::owner)], 1u);
  EXPECT_EQ(statistics.bytes[static_cast<std::size_t>(Path::owner)], 100u);
  EXPECT_EQ(statistics.stripe_contention, 3u);
}

TEST_F(RankCountsTest, know_an_agent_that_runs_and_no_other) {
  ASSERT_TRUE(rank.agent.prepare().is_ok());
  EXPECT_EQ(rank.agent.thread_id(), 0);
  ASSERT_TRUE(rank.agent.start().is_ok());
  ASSERT_TRUE(rank.agent.start().is_ok()) << "which it does already";
  rank.agent.stop();
  EXPECT_EQ(rank.agent.thread_id(), 0);
  EXPECT_EQ(read({}).agent_wakeups, 0u);
}

}  // namespace
}  // namespace farsum::test
