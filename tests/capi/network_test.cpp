// Jobs whose ranks are on several nodes: ranks of one machine here, which share
// no memory where the test says so. They reach each other over the network as
// if they were on two hosts.
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

using NetworkCard = std::array<unsigned char, FARSUM_NETWORK_CARD_BYTES>;

// Everybody adds to everybody, and reads it.
void add_and_read_in_a_window(farsum_group group) {
  int size = 0, rank = 0;
  ASSERT_FINE(farsum_size(group, &size));
  ASSERT_FINE(farsum_rank(group, &rank));
  void* memory = nullptr;
  farsum_window window{};
  ASSERT_FINE(farsum_window_allocate(group, 64, nullptr, &memory, &window));
  ASSERT_FINE(farsum_lock_all(window));
  const std::uint64_t one = 1;
  for (int target = 0; target < size; ++target)
    ASSERT_FINE(farsum_accumulate(window, target, 8, &one, 1, FARSUM_UINT64, FARSUM_SUM));
  ASSERT_FINE(farsum_flush(window, FARSUM_ALL_RANKS));
  ASSERT_FINE(farsum_barrier(group));
  for (int target = 0; target < size; ++target) {
    std::uint64_t seen = 0;
    ASSERT_FINE(farsum_get(window, target, 8, &seen, sizeof seen));
    ASSERT_FINE(farsum_flush(window, target));
    EXPECT_EQ(seen, static_cast<std::uint64_t>(size)) << "of rank " << target;
  }
  ASSERT_FINE(farsum_unlock_all(window));
  ASSERT_FINE(farsum_window_free(&window));
}

// After windows in which each rank asked both of the other node, who asked it.
void expect_both_of_the_other_node_in_the_counts() {
  farsum_statistics now{};
  now.struct_bytes = sizeof now;
  ASSERT_FINE(farsum_statistics_read(&now));
  EXPECT_EQ(now.network_peers, 2u);
  EXPECT_EQ(now.network_connections, 4u);
  EXPECT_EQ(now.network_endpoints, 4u);
  EXPECT_GT(now.network_peer_bytes, 2u * 100);
  EXPECT_EQ(now.network_strangers, 0u);
  EXPECT_EQ(now.network_refused, 0u);
}

TEST(SeveralNodes, serve_windows_of_all_ranks_again_and_again) {
  run_embedded(two_nodes, [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    for (int round = 0; round < 3; ++round) {
      ASSERT_FINE(farsum_init(&options));
      std::array<int, most_ranks> nodes{};
      for (int other = 0; other < most_ranks; ++other) {
        EXPECT_FINE(farsum_node(farsum_world(), other, &nodes[static_cast<std::size_t>(other)]));
      }
      EXPECT_THAT(nodes, testing::ElementsAre(0, 1, 1, 0));
      add_and_read_in_a_window(farsum_world());
      expect_both_of_the_other_node_in_the_counts();
      ASSERT_FINE(farsum_barrier(farsum_world()));
      ASSERT_FINE(farsum_finalize());
    }
  });
}

// Everybody is told by each, without a wait in between.
void use_collectives(farsum_group group) {
  int size = 0, rank = 0;
  ASSERT_FINE(farsum_size(group, &size));
  ASSERT_FINE(farsum_rank(group, &rank));
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<int> all(ranks);
  ASSERT_FINE(farsum_allgather(group, &rank, all.data(), sizeof rank));
  for (int other = 0; other < size; ++other) EXPECT_EQ(all[static_cast<std::size_t>(other)], other);
  for (int number = 0; number < 50; ++number) {
    const int root = number % size;
    int told = rank == root ? number : -1;
    ASSERT_FINE(farsum_broadcast(group, &told, sizeof told, root));
    ASSERT_EQ(told, number);
  }
  std::vector<std::uint64_t> mine(10'000, static_cast<std::uint64_t>(rank)), sum(mine.size());
  ASSERT_FINE(farsum_allreduce(group, mine.data(), sum.data(), sum.size(), FARSUM_UINT64, FARSUM_SUM));
  EXPECT_EQ(sum, std::vector<std::uint64_t>(sum.size(), ranks * (ranks - 1) / 2));
  ASSERT_FINE(farsum_barrier(group));
}

// So many that they do not tell each other at once, and a node of two ranks among them; then fewer of them.
// Takes seconds: many nodes meet.
TEST(SeveralNodes, of_many_nodes_meet_and_make_groups_and_windows) {
  constexpr int ranks = 15;
  std::vector<Variables> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back({{"FARSUM_NODE_NAME", std::to_string(rank % (ranks - 1))}});
  const auto body = [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    use_collectives(farsum_world());
    add_and_read_in_a_window(farsum_world());
    std::vector<int> most;
    for (int member = ranks - 1; member > 0; --member) most.push_back(member);
    for (int round = 0; rank != 0 && round < 2; ++round) {
      farsum_group group{};
      ASSERT_FINE(farsum_group_create(farsum_world(), most.data(), static_cast<int>(most.size()), &group));
      use_collectives(group);
      ASSERT_FINE(farsum_group_free(&group));
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    ASSERT_FINE(farsum_finalize());
  };
  run_embedded(nodes, body, ranks);
}

// Ranks 0 and 1 on one node, 2 and 3 on another, as an embedder sees it that
// does not look further at first.
struct NodeByNode {
  SharedWithRanks<std::array<Gathering, 2>> nodes;

  NodeByNode() {
    for (Gathering& node : *nodes) node.open(2);
  }
  farsum_status init(int rank, unsigned char secret = 7) const {
    Caller caller{&(*nodes)[static_cast<std::size_t>(rank / 2)], rank % 2};
    farsum_init_options options = options_of(caller);
    options.job_rank = rank;
    options.job_size = most_ranks;
    options.job_secret[3] = secret;
    return farsum_init(&options);
  }
};

std::vector<NetworkCard> exchange_cards(int rank, Gathering& everybody) {
  NetworkCard mine{};
  EXPECT_FINE(farsum_network_card(mine.data()));
  std::vector<NetworkCard> cards(most_ranks);
  EXPECT_EQ(everybody.gather(rank, mine.data(), cards.data(), sizeof mine), 0);
  return cards;
}

TEST(NodeByNode, ranks_of_other_nodes_take_part_once_they_are_introduced) {
  const NodeByNode job;
  run_embedded({}, [&](int rank, Gathering& everybody) {
    ASSERT_FINE(job.init(rank));
    int size = 0, node = -1;
    EXPECT_FINE(farsum_size(farsum_world(), &size));
    EXPECT_EQ(size, most_ranks);
    EXPECT_FINE(farsum_node(farsum_world(), rank, &node));
    EXPECT_EQ(node, 0);
    const int remote = (rank + 2) % most_ranks;
    EXPECT_REFUSED(farsum_node(farsum_world(), remote, &node), FARSUM_ERR_UNSUPPORTED,
                   HasSubstr("rank " + std::to_string(remote)));
    EXPECT_REFUSED(farsum_barrier(farsum_world()), FARSUM_ERR_UNSUPPORTED, HasSubstr("farsum_barrier: some ranks"));
    EXPECT_REFUSED(farsum_broadcast(farsum_world(), &size, sizeof size, 0), FARSUM_ERR_UNSUPPORTED,
                   HasSubstr("farsum_broadcast: some ranks"));
    EXPECT_REFUSED(farsum_allgather(farsum_world(), &size, &size, 0), FARSUM_ERR_UNSUPPORTED,
                   HasSubstr("farsum_allgather: some ranks"));
    EXPECT_REFUSED(farsum_allreduce(farsum_world(), &size, &size, 1, FARSUM_INT32, FARSUM_SUM), FARSUM_ERR_UNSUPPORTED,
                   HasSubstr("farsum_allreduce: some ranks"));
    const std::vector<NetworkCard> cards = exchange_cards(rank, everybody);
    ASSERT_FINE(farsum_network_introduce(cards.data(), most_ranks));
    EXPECT_FINE(farsum_node(farsum_world(), remote, &node));
    EXPECT_EQ(node, 1);
    const std::array<int, most_ranks> all = {0, 1, 2, 3};
    farsum_group group{};
    ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), most_ranks, &group));
    add_and_read_in_a_window(group);
    ASSERT_FINE(farsum_group_free(&group));
    everybody.gather(rank, &rank, &size, 0);
    ASSERT_FINE(farsum_finalize_forced());
  });
}

void attend_and_end() {
  // The agent may serve at the moment, or miss this thread at once.
  farsum_status second = FARSUM_OK;
  while (second != FARSUM_ERR_PENDING) {
    if (farsum_attend_begin() != FARSUM_OK) continue;
    second = farsum_attend_begin();
  }
  EXPECT_EQ(second, FARSUM_ERR_PENDING);
  EXPECT_THAT(farsum_last_error(), HasSubstr("farsum_attend_begin"));
  int attends = 0;
  while (attends == 0) {
    attends = farsum_attend();
    if (attends == 0) (void)farsum_attend_begin();
  }
  EXPECT_FINE(farsum_attend_end());
  EXPECT_EQ(farsum_attend(), 0);
  EXPECT_FINE(farsum_attend_end());
}

TEST(Attending, is_refused_without_a_job_and_where_nothing_comes_over_a_network) {
  run_embedded({}, [&](int rank, Gathering& everybody) {
    EXPECT_REFUSED(farsum_attend_begin(), FARSUM_ERR_NOT_INITIALIZED, HasSubstr("farsum_attend_begin"));
    EXPECT_EQ(farsum_attend(), 0);
    EXPECT_REFUSED(farsum_attend_end(), FARSUM_ERR_NOT_INITIALIZED, HasSubstr("farsum_attend_end"));
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    EXPECT_REFUSED(farsum_attend_begin(), FARSUM_ERR_UNSUPPORTED, HasSubstr("network"));
    EXPECT_EQ(farsum_attend(), 0);
    EXPECT_FINE(farsum_attend_end());
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(Attending, is_one_threads_until_it_ends_and_may_be_left_open) {
  run_embedded(two_nodes, [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    attend_and_end();
    add_and_read_in_a_window(farsum_world());
    (void)farsum_attend_begin();
    ASSERT_FINE(farsum_finalize());
    EXPECT_EQ(farsum_attend(), 0);
  });
}

TEST(NodeByNode, ranks_that_were_never_introduced_serve_windows_of_their_own_node) {
  const NodeByNode job;
  run_embedded({}, [&](int rank, Gathering&) {
    ASSERT_FINE(job.init(rank));
    const std::array<int, 2> here = {rank / 2 * 2, rank / 2 * 2 + 1};
    farsum_group group{};
    ASSERT_FINE(farsum_group_create(farsum_world(), here.data(), 2, &group));
    add_and_read_in_a_window(group);
    ASSERT_FINE(farsum_group_free(&group));
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(NodeByNode, a_group_with_a_rank_that_was_not_introduced_is_refused) {
  const NodeByNode job;
  run_embedded({}, [&](int rank, Gathering&) {
    ASSERT_FINE(job.init(rank));
    const std::array<int, most_ranks> all = {0, 1, 2, 3};
    farsum_group group{};
    EXPECT_REFUSED(farsum_group_create(farsum_world(), all.data(), most_ranks, &group), FARSUM_ERR_UNSUPPORTED,
                   HasSubstr("rank"));
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(NodeByNode, cards_are_refused_that_no_rank_of_this_build_has_written) {
  const NodeByNode job;
  run_embedded({}, [&](int rank, Gathering&) {
    NetworkCard card{};
    EXPECT_REFUSED(farsum_network_card(card.data()), FARSUM_ERR_NOT_INITIALIZED, HasSubstr("farsum_network_card"));
    EXPECT_REFUSED(farsum_network_introduce(card.data(), 1), FARSUM_ERR_NOT_INITIALIZED,
                   HasSubstr("farsum_network_introduce"));
    ASSERT_FINE(job.init(rank));
    EXPECT_REFUSED(farsum_network_card(nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("farsum_network_card"));
    EXPECT_REFUSED(farsum_network_introduce(nullptr, 1), FARSUM_ERR_ARGUMENT, HasSubstr("null"));
    EXPECT_REFUSED(farsum_network_introduce(card.data(), -1), FARSUM_ERR_ARGUMENT, HasSubstr("-1"));
    EXPECT_FINE(farsum_network_introduce(nullptr, 0));
    card.fill(0xFF);
    EXPECT_REFUSED(farsum_network_introduce(card.data(), 1), FARSUM_ERR_UNSUPPORTED, HasSubstr("version of Farsum"));
    ASSERT_FINE(farsum_network_card(card.data()));
    EXPECT_THAT(card, Contains(testing::Ne(0)));
    EXPECT_FINE(farsum_network_introduce(card.data(), 1));
    ASSERT_FINE(farsum_finalize());
  });
}

}  // namespace
}  // namespace farsum::test
