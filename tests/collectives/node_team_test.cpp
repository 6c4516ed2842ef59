// Ranks of one node meet: members are threads over one block of memory.
#include "collectives/node_team.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

// Where a node's ranks meet in a test: zeroed, and aligned.
class BlockOfNode {
 public:
  explicit BlockOfNode(std::uint32_t members) : memory_(NodeTeamBlock::footprint(members) / 8 + 16) {}
  NodeTeamBlock& operator*() {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    return *reinterpret_cast<NodeTeamBlock*>(round_up(start, std::uint64_t{cache_line_bytes}));
  }

 private:
  std::vector<std::uint64_t> memory_;
};

class NodeOfThreads : public testing::TestWithParam<std::uint32_t> {
 protected:
  void run(const std::function<void(NodeTeam&)>& body) {
    const std::uint32_t members = GetParam();
    BlockOfNode block(members);
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

// Two members whose calls this thread makes in turn: where one waits, the rest happens.
class NodeOfTwo : public testing::Test {
 protected:
  class WaiterThatRuns : public SleepingWaiter {
   public:
    std::function<void()> meanwhile = [] {};
    std::string of_look;  // what a look at the peers fails with, if anything
    Status looked_in_vain(const char*) override {
      return of_look.empty() ? Status() : Status{Code::peer_failed, of_look};
    }
    Status wait(EventCount&, FunctionRef<bool()> done, const char*) override {
      meanwhile();
      EXPECT_TRUE(done()) << "would sleep for ever";
      return {};
    }
  };

  NodeTeam member(std::uint32_t rank) { return {*block_, 2, rank, waiter_}; }

  BlockOfNode block_{2};
  WaiterThatRuns waiter_;
};

TEST_F(NodeOfTwo, is_not_met_by_a_later_call_of_the_one_that_stays_away) {
  NodeTeam first = member(0), second = member(1);
  first.stay_away(Status{Code::peer_failed, "the other node is lost"});
  const Status later = first.barrier("later");
  EXPECT_EQ(later.code(), Code::peer_failed);
  EXPECT_EQ(later.text(), "the other node is lost");
  const Status waits = second.barrier("waits");
  EXPECT_EQ(waits.code(), Code::peer_failed);
  EXPECT_NE(waits.text().find("place 0"), std::string_view::npos) << waits.text();
}

TEST_F(NodeOfTwo, is_told_by_its_own_look_which_rank_was_lost_where_one_stays_away_for_that) {
  NodeTeam first = member(0), second = member(1);
  first.stay_away(Status{Code::peer_failed, "rank 5 is lost"});
  waiter_.of_look = "rank 5 is lost";
  const Status waits = second.barrier("waits");
  EXPECT_EQ(waits.code(), Code::peer_failed);
  EXPECT_EQ(waits.text(), "rank 5 is lost");
}

TEST_F(NodeOfTwo, looks_for_no_death_where_one_stays_away_for_another_reason) {
  NodeTeam first = member(0), second = member(1);
  first.stay_away(Status{Code::no_memory, "no memory"});
  waiter_.of_look = "rank 5 is lost";
  EXPECT_EQ(second.barrier("waits").code(), Code::no_memory);
}

TEST_F(NodeOfTwo, has_met_where_one_stays_away_from_the_next_meeting) {
  NodeTeam first = member(0), second = member(1);
  waiter_.meanwhile = [&] {
    EXPECT_TRUE(second.barrier("last to come").is_ok());
    second.stay_away(Status{Code::no_memory, "no memory"});
  };
  EXPECT_TRUE(first.barrier("first to come").is_ok());
  waiter_.meanwhile = [] {};
  EXPECT_EQ(first.barrier("the next").code(), Code::no_memory);
}

TEST_F(NodeOfTwo, does_not_forget_that_one_stays_away_where_another_gives_something_up) {
  NodeTeam first = member(0), second = member(1);
  first.stay_away(Status{Code::no_memory, "no memory"});
  second.give_up(7);
  EXPECT_EQ(second.who_gave_up(7), 0u);
  EXPECT_EQ(second.barrier("waits").code(), Code::no_memory);
}

}  // namespace
}  // namespace farsum
