// Ranks of one node meet: members are threads over one block of memory.
#include "collectives/node_team.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

class NodeOfThreads : public testing::TestWithParam<std::uint32_t> {
 protected:
  void run(const std::function<void(NodeTeam&)>& body) {
    const std::uint32_t members = GetParam();
    std::vector<std::uint64_t> memory(NodeTeamBlock::footprint(members) / 8 + 16);
    auto* block = reinterpret_cast<NodeTeamBlock*>(
        round_up(reinterpret_cast<std::uintptr_t>(memory.data()), std::uint64_t{cache_line_bytes}));
    std::vector<std::thread> threads;
    for (std::uint32_t member = 0; member < members; ++member) {
      threads.emplace_back([&, member] {
        SleepingWaiter waiter;
        NodeTeam team(*block, members, member, waiter);
        body(team);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

// One line, the first numbers that need more, groups of unequal size, and as many as a large node has.
INSTANTIATE_TEST_SUITE_P(Members, NodeOfThreads, testing::Values(1, 2, 8, 9, 16, 37, 128),
                         testing::PrintToStringParamName());

TEST_P(NodeOfThreads, leaves_a_barrier_when_all_have_come) {
  constexpr std::uint32_t rounds = 20;
  std::atomic<std::uint32_t> come{0};
  run([&](NodeTeam& team) {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      come.fetch_add(1);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      ASSERT_EQ(come.load(), team.ranks() * round);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
    }
  });
}

TEST_P(NodeOfThreads, is_answered_by_the_last_to_come_in_one_meeting) {
  std::atomic<std::uint32_t> decided{0};
  run([&](NodeTeam& team) {
    for (std::uint32_t round = 1; round <= 10; ++round) {
      const std::uint32_t mine = round * 1000 + team.rank();
      std::vector<std::uint32_t> all(team.ranks());
      std::uint64_t answer = 0;
      const auto decide = [&] {
        decided.fetch_add(1);
        answer = std::accumulate(all.begin(), all.end(), std::uint64_t{0});
      };
      const std::uint32_t met = team.meetings();
      ASSERT_TRUE(team.consult(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                               std::as_writable_bytes(std::span(&answer, 1)), decide, "consult")
                      .is_ok());
      ASSERT_EQ(team.meetings() - met, 1U);
      for (std::uint32_t member = 0; member < team.ranks(); ++member) ASSERT_EQ(all[member], round * 1000 + member);
      ASSERT_EQ(answer, std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
    }
  });
  EXPECT_EQ(decided.load(), 10U);
}

TEST_P(NodeOfThreads, is_answered_when_it_has_heard_all_of_what_takes_several_meetings) {
  using Words = std::array<std::uint32_t, 150>;
  run([](NodeTeam& team) {
    Words mine;
    mine.fill(team.rank());
    std::vector<Words> all(team.ranks());
    std::uint32_t answer = 0;
    ASSERT_TRUE(team.consult(
                        std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                        std::as_writable_bytes(std::span(&answer, 1)),
                        [&] {
                          for (const Words& words : all) answer += words.back();
                        },
                        "consult")
                    .is_ok());
    EXPECT_EQ(answer, team.ranks() * (team.ranks() - 1) / 2);
    for (std::uint32_t member = 0; member < team.ranks(); ++member) EXPECT_EQ(all[member].back(), member);
  });
}

}  // namespace
}  // namespace farsum
