// Ranks of several nodes meet: the nodes are blocks of memory in this process, what their first ranks tell each other
// goes through mailboxes.
#include "collectives/group_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "failing_memory.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

constexpr int most_waiting = TeamPost::most_waiting_of_a_sender;

// The ranks of a job on nodes: node_of[r] is rank r's.
class NodesOfThreads : public testing::Test {
 protected:
  using Body = std::function<void(GroupTeam&, std::uint32_t rank)>;

  void run(const std::vector<std::uint32_t>& node_of, const Body& body) {
    std::map<std::uint32_t, std::vector<std::uint64_t>> blocks;
    for (const std::uint32_t node : node_of) {
      const auto members = static_cast<std::uint32_t>(std::count(node_of.begin(), node_of.end(), node));
      blocks[node].resize(NodeTeamBlock::footprint(members) / 8 + 16);
    }
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) {
      const auto start = reinterpret_cast<std::uintptr_t>(blocks[node_of[rank]].data());
      auto* block = reinterpret_cast<NodeTeamBlock*>(round_up(start, cache_line_bytes));
      threads.emplace_back([&, rank, block] {
        SleepingWaiter waiter;
        Post post(boxes_, rank, waiter);
        GroupTeam team(places_of(node_of, node_of[rank]), rank, &post, waiter);
        team.begin(*block, 7);
        body(team, rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Two ranks on each; the first rank of node n is n.
  static std::vector<std::uint32_t> nodes_of_two(std::uint32_t nodes) {
    std::vector<std::uint32_t> node_of(2 * nodes);
    for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) node_of[rank] = rank % nodes;
    return node_of;
  }

  static void expect_gathers(GroupTeam& team, std::uint32_t rank, std::uint64_t round) {
    const std::uint64_t mine = round * 100 + rank;
    std::vector<std::uint64_t> all(team.size());
    ASSERT_TRUE(
        team.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
    for (std::uint32_t other = 0; other < all.size(); ++other) EXPECT_EQ(all[other], round * 100 + other);
  }

  Mailboxes boxes_;
};

TEST_F(NodesOfThreads, gather_what_each_rank_has_by_rank_and_not_by_node) {
  run({0, 1, 0, 2, 1}, [](GroupTeam& team, std::uint32_t rank) {
    for (std::uint64_t round = 1; round <= 20; ++round) {
      const std::uint64_t mine = round * 100 + rank;
      std::array<std::uint64_t, 5> all{};
      ASSERT_TRUE(
          team.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
      for (std::uint32_t other = 0; other < all.size(); ++other) EXPECT_EQ(all[other], round * 100 + other);
    }
  });
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), 2);
}

TEST_F(NodesOfThreads, gather_and_broadcast_more_than_a_message_holds) {
  constexpr std::size_t words = 20'000;
  run({0, 1, 1}, [](GroupTeam& team, std::uint32_t rank) {
    std::vector<std::uint64_t> mine(words), all(3 * words);
    for (std::size_t i = 0; i < words; ++i) mine[i] = rank * words + i;
    ASSERT_TRUE(
        team.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
    for (const std::uint32_t root : {0u, 1u, 2u}) {
      std::vector<std::uint64_t> buffer = rank == root ? mine : std::vector<std::uint64_t>(words);
      ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(buffer)), root, "broadcast").is_ok());
      for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(buffer[i], root * words + i);
    }
  });
  EXPECT_LE(boxes_.longest(), TeamPost::most_bytes);
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), most_waiting);
}

TEST_F(NodesOfThreads, leave_a_barrier_when_all_have_come) {
  std::atomic<int> come{0};
  run({0, 0, 1, 1}, [&](GroupTeam& team, std::uint32_t) {
    for (int round = 1; round <= 200; ++round) {
      come.fetch_add(1);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      ASSERT_EQ(come.load(), 4 * round);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
    }
  });
  // One message each way between the first ranks of the two nodes.
  EXPECT_EQ(boxes_.sent(), 2 * 2 * 200u);
}

// More nodes than meet at once, and not as many as a power of two: letters hold the blocks of several of them.
TEST_F(NodesOfThreads, gather_in_rounds_where_they_are_many_and_have_different_numbers_of_members) {
  constexpr std::size_t words = 900;
  std::vector<std::uint32_t> node_of;
  for (std::uint32_t rank = 0; rank < 40; ++rank) node_of.push_back(rank * rank % 19);
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    std::vector<std::uint64_t> mine(words), all(node_of.size() * words);
    for (std::size_t i = 0; i < words; ++i) mine[i] = rank * words + i;
    for (int round = 0; round < 3; ++round) {
      std::fill(all.begin(), all.end(), 0);
      ASSERT_TRUE(
          team.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
      for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
    }
  });
  EXPECT_LE(boxes_.longest(), TeamPost::most_bytes);
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), 2);
}

TEST_F(NodesOfThreads, of_many_nodes_leave_a_barrier_when_all_have_come) {
  constexpr std::uint32_t nodes = 21;
  std::vector<std::uint32_t> node_of(nodes);
  std::iota(node_of.begin(), node_of.end(), 0u);
  std::atomic<std::uint32_t> come{0};
  run(node_of, [&](GroupTeam& team, std::uint32_t) {
    for (std::uint32_t round = 1; round <= 50; ++round) {
      come.fetch_add(1);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      ASSERT_GE(come.load(), nodes * round);
    }
  });
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), 2);
}

TEST_F(NodesOfThreads, end_a_gathering_of_different_lengths_with_the_lengths) {
  run({0, 1}, [](GroupTeam& team, std::uint32_t rank) {
    const std::vector<std::byte> mine(rank == 0 ? 8 : 12);
    std::vector<std::byte> all(2 * mine.size());
    const Status status = team.allgather(mine, all, "gather");
    EXPECT_EQ(status.code(), Code::argument);
    EXPECT_NE(status.text().find(rank == 0 ? "sent 12 bytes where 8 belong" : "sent 8 bytes where 12 belong"),
              std::string::npos)
        << status.text();
  });
}

// The receiver comes when the root has ended as many broadcasts as it can without it, and then lags behind.
TEST_F(NodesOfThreads, are_told_by_a_root_that_waits_for_them_now_and_then_only) {
  constexpr std::uint32_t broadcasts = 10'000;
  std::atomic<std::uint32_t> ended{0};
  run({0, 0, 1, 2}, [&](GroupTeam& team, std::uint32_t rank) {
    if (rank == 3) {
      for (std::uint32_t seen = ended.load(); seen < TeamPost::most_rounds_ahead; seen = ended.load()) ended.wait(seen);
    }
    for (std::uint32_t number = 0; number < broadcasts; ++number) {
      std::uint32_t told = rank == 1 ? number : ~number;
      ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(&told, 1)), 1, "broadcast").is_ok());
      ASSERT_EQ(told, number);
      if (rank != 0) continue;
      ended.fetch_add(1);
      ended.notify_all();
    }
  });
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), most_waiting);
}

TEST_F(NodesOfThreads, broadcast_from_any_rank_between_other_collectives) {
  std::vector<std::uint32_t> node_of;
  for (std::uint32_t rank = 0; rank < 34; ++rank) node_of.push_back(rank * rank % 17 + rank % 2 * 17);
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t number = 0; number < 3 * ranks; ++number) {
      const std::uint32_t root = number * 5 % ranks;
      std::uint32_t told = rank == root ? number : ~number;
      ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(&told, 1)), root, "broadcast").is_ok());
      ASSERT_EQ(told, number);
      if (number % 13 == 5) {
        ASSERT_TRUE(team.barrier("barrier").is_ok());
      }
      if (number % 7 != 2) continue;
      std::vector<std::uint32_t> all(ranks);
      ASSERT_TRUE(
          team.allgather(std::as_bytes(std::span(&rank, 1)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
      for (std::uint32_t other = 0; other < ranks; ++other) ASSERT_EQ(all[other], other);
    }
  });
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), most_waiting);
}

// So many nodes meet in rounds: whoever finds the other length still has to tell others.
TEST_F(NodesOfThreads, all_hear_of_a_gathering_of_another_length_and_go_on) {
  const std::vector<std::uint32_t> node_of = nodes_of_two(17);
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t round = 1; round <= 12; ++round) {
      const std::uint32_t other_node = round * 5 % 17;
      const bool differs = node_of[rank] == other_node;
      // So that one of them would take more rounds, and once has nothing.
      const std::size_t theirs = round % 3 == 0 ? 5000 : round % 3 == 1 ? 0 : 12;
      const std::vector<std::byte> mine(differs ? theirs : 8);
      std::vector<std::byte> all(ranks * mine.size());
      const Status status = team.allgather(mine, all, "gather");
      EXPECT_EQ(status.code(), Code::argument);
      const std::string expected =
          differs ? fmt::format("sent 8 bytes where {} belong", theirs)
                  : fmt::format("rank {} of the job sent {} bytes where 8 belong", other_node, theirs);
      EXPECT_NE(status.text().find(expected), std::string::npos) << status.text() << expected;
      expect_gathers(team, rank, round);
    }
  });
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), 2);
}

// One that is told too much or too little tells those behind it all the same, be it in several letters.
TEST_F(NodesOfThreads, end_a_broadcast_of_another_length_than_the_roots_with_both) {
  const std::vector<std::uint32_t> node_of = nodes_of_two(15);
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    for (const std::size_t length : {16u, 0u, 32'736u, 32'737u, 500'000u}) {
      const std::uint32_t node = node_of[rank];
      const bool differs = node == 8 || node == 2;
      const std::size_t own = node == 8 ? length / 10 + 1 : node == 2 ? 2 * length + 40 : length;
      std::vector<std::byte> buffer(own, std::byte(rank == 0 ? 7 : 0));
      const Status status = team.broadcast(buffer, 0, "broadcast");
      EXPECT_EQ(status.code(), differs ? Code::argument : Code::ok) << rank << status.text();
      EXPECT_EQ(status.text().find(fmt::format("sent {} bytes where {} ", length, own)) != std::string::npos, differs)
          << status.text();
      EXPECT_EQ(buffer, std::vector<std::byte>(own, std::byte(differs ? 0 : 7)));
      expect_gathers(team, rank, length);
    }
  });
  EXPECT_LE(boxes_.longest(), TeamPost::most_bytes);
  EXPECT_LE(boxes_.most_waiting_of_a_sender(), most_waiting);
}

// The first of them is told, or finds it by the letters; the others of its node are told by it.
TEST_F(NodesOfThreads, of_which_one_makes_another_call_all_hear_of_it_and_go_on) {
  const std::vector<std::uint32_t> node_of = nodes_of_two(14);
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    std::vector<std::byte> all(node_of.size() * 8);
    const Status status =
        node_of[rank] == 3 ? team.barrier("barrier") : team.allgather(std::vector<std::byte>(8), all, "gather");
    EXPECT_EQ(status.code(), Code::argument) << rank;
    EXPECT_NE(status.text().find("made another call"), std::string::npos) << status.text();
    expect_gathers(team, rank, 1);
  });
}

TEST_F(NodesOfThreads, of_a_node_that_cannot_reach_another_all_hear_of_it) {
  boxes_.cut();
  run({0, 0, 1, 0, 1}, [&](GroupTeam& team, std::uint32_t) {
    std::array<std::byte, 8> mine{};
    std::array<std::byte, 40> all{};
    EXPECT_EQ(team.allgather(mine, all, "gather").code(), Code::peer_failed);
    EXPECT_EQ(team.barrier("barrier").code(), Code::peer_failed);
  });
}

TEST_F(NodesOfThreads, of_a_node_that_cannot_meet_others_all_hear_of_it) {
  boxes_.cut();
  run({0, 0, 1, 0, 1},
      [&](GroupTeam& team, std::uint32_t) { EXPECT_EQ(team.barrier("barrier").code(), Code::peer_failed); });
}

TEST_F(NodesOfThreads, of_a_node_that_is_not_reached_by_a_broadcast_all_hear_of_it) {
  boxes_.cut();
  run({0, 0, 1, 0, 1}, [&](GroupTeam& team, std::uint32_t rank) {
    std::array<std::byte, 8> buffer{};
    const Status status = team.broadcast(buffer, 1, "broadcast");
    // Who has left it to the first of the root's node is done with it.
    EXPECT_EQ(status.code(), rank == 1 || rank == 3 ? Code::ok : Code::peer_failed) << rank;
  });
}

class LettersOfNodes : public NodesOfThreads, public testing::WithParamInterface<std::uint32_t> {
 protected:
  std::uint32_t nodes() const { return GetParam(); }
  // One rank on each; what each of them sends.
  void expect_letters(std::size_t each, const Body& body) {
    std::vector<std::uint32_t> node_of(nodes());
    std::iota(node_of.begin(), node_of.end(), 0u);
    run(node_of, body);
    for (std::uint32_t rank = 0; rank < nodes(); ++rank) EXPECT_EQ(boxes_.sent_by(rank), each) << rank;
  }
  std::size_t of_a_meeting() const { return nodes() <= 12 ? nodes() - 1 : std::bit_width(nodes() - 1); }
};
INSTANTIATE_TEST_SUITE_P(of, LettersOfNodes, testing::Values(2U, 3U, 8U, 12U, 13U, 64U, 1000U),
                         [](const auto& test) { return std::to_string(test.param); });

// In make test-all (*/1000): a thousand nodes.
TEST_P(LettersOfNodes, in_a_barrier_are_one_to_each_other_where_they_are_few_and_the_logarithm_where_they_are_many) {
  expect_letters(of_a_meeting(), [](GroupTeam& team, std::uint32_t) { ASSERT_TRUE(team.barrier("barrier").is_ok()); });
}

// In make test-all (*/1000): a thousand nodes.
TEST_P(LettersOfNodes, in_an_allgather_are_as_many_as_in_a_barrier) {
  expect_letters(of_a_meeting(), [&](GroupTeam& team, std::uint32_t rank) {
    std::vector<std::uint32_t> all(nodes());
    ASSERT_TRUE(
        team.allgather(std::as_bytes(std::span(&rank, 1)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
    for (std::uint32_t other = 0; other < nodes(); ++other) ASSERT_EQ(all[other], other);
  });
}

// In make test-all (*/1000): a thousand nodes.
TEST_P(LettersOfNodes, in_a_broadcast_are_one_to_each_node_but_the_roots) {
  std::vector<std::uint32_t> node_of(nodes());
  std::iota(node_of.begin(), node_of.end(), 0u);
  run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
    std::uint32_t told = rank;
    ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(&told, 1)), nodes() - 1, "broadcast").is_ok());
    ASSERT_EQ(told, nodes() - 1);
  });
  EXPECT_EQ(boxes_.sent(), nodes() - 1);
  EXPECT_EQ(boxes_.sent_by(nodes() - 1), nodes() <= 12 ? nodes() - 1 : std::bit_width(nodes() - 1));
}

// Who found none in the middle would leave the others waiting.
TEST_F(NodesOfThreads, need_no_memory_once_they_have_begun) {
  constexpr std::size_t words = 5'000;
  run({0, 1, 0, 1, 2}, [](GroupTeam& team, std::uint32_t rank) {
    std::vector<std::uint64_t> mine(words, rank), all(5 * words), told(words, rank == 3 ? 17 : 0);
    const FailingMemory none(0, FailingMemory::Fails::for_good);
    const Status gathered =
        team.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "gather");
    const Status broadcast = team.broadcast(std::as_writable_bytes(std::span(told)), 3, "broadcast");
    const Status met = team.barrier("barrier");
    const FailingMemory::Pause pause;
    EXPECT_TRUE(gathered.is_ok() && broadcast.is_ok() && met.is_ok());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i / words);
    EXPECT_EQ(told, std::vector<std::uint64_t>(words, 17));
  });
}

TEST_F(NodesOfThreads, of_one_node_send_nothing) {
  run({3, 3, 3}, [](GroupTeam& team, std::uint32_t rank) {
    std::uint32_t buffer = rank;
    ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(&buffer, 1)), 2, "broadcast").is_ok());
    EXPECT_EQ(buffer, 2u);
    ASSERT_TRUE(team.barrier("barrier").is_ok());
  });
  EXPECT_EQ(boxes_.sent(), 0u);
}

}  // namespace
}  // namespace farsum
