// How ranks find each other, with threads for ranks and FARSUM_NODE_NAME for nodes.
#include "runtime/wireup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <optional>
#include <thread>

#include "collectives/node_team.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As an embedder brings it, once for each rank.
class Gathering {
 public:
  explicit Gathering(std::size_t ranks) : ranks_(ranks), meeting_(static_cast<std::ptrdiff_t>(ranks)) {}
  Allgather of(std::size_t rank) {
    return [this, rank](const void* mine, void* all, std::size_t bytes) -> Status {
      meeting_.arrive_and_wait();
      if (rank == 0) pool_.resize(ranks_ * bytes);
      meeting_.arrive_and_wait();
      std::memcpy(pool_.data() + rank * bytes, mine, bytes);
      meeting_.arrive_and_wait();
      std::memcpy(all, pool_.data(), pool_.size());
      return {};
    };
  }

 private:
  std::size_t ranks_;
  std::barrier<> meeting_;
  std::vector<std::byte> pool_;
};

Settings on_node(const std::string& name) {
  Settings settings;
  settings.node_name = name;
  settings.segment_bytes = std::uint64_t{1} << 28;
  return settings;
}

using Outcomes = std::vector<std::optional<Result<Membership>>>;

// What each rank gets that runs on the node so named.
Outcomes meet_on(const std::vector<std::string>& nodes,
                 const std::function<Result<Membership>(std::uint32_t, const Settings&, const Allgather&)>& join) {
  Gathering gathering(nodes.size());
  Outcomes outcomes(nodes.size());
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank)
    threads.emplace_back([&, rank] { outcomes[rank] = join(rank, on_node(nodes[rank]), gathering.of(rank)); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

Outcomes meet_as_job(const std::vector<std::string>& nodes) {
  return meet_on(nodes, [&](std::uint32_t rank, const Settings& settings, const Allgather& allgather) {
    return join_by_allgather(rank, static_cast<std::uint32_t>(nodes.size()), allgather, settings);
  });
}

std::vector<Membership*> memberships_of(Outcomes& outcomes) {
  std::vector<Membership*> memberships;
  for (auto& outcome : outcomes) {
    if (outcome->is_ok()) {
      memberships.push_back(&outcome->value());
    } else {
      ADD_FAILURE() << outcome->take_status().text();
    }
  }
  return memberships;
}

// What rank `from` of the node writes there, the other finds.
bool share_memory(Membership& one, Membership& other) {
  std::memset(one.segment->world_team(), 0x5A, sizeof(std::uint64_t));
  std::uint64_t seen = 0;
  std::memcpy(&seen, other.segment->world_team(), sizeof seen);
  std::memset(one.segment->world_team(), 0, sizeof(std::uint64_t));
  return seen == 0x5A5A5A5A5A5A5A5AU;
}

TEST(WireUp, of_one_node_gives_all_ranks_one_memory_and_asks_nobody_again) {
  Outcomes outcomes = meet_as_job({"fox", "fox", "fox"});
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 3u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(memberships[rank]->rank, rank);
    EXPECT_EQ(memberships[rank]->size, 3u);
    EXPECT_EQ(memberships[rank]->map.nodes(), 1u);
    EXPECT_THAT(memberships[rank]->here.ranks(), ElementsAre(0, 1, 2));
    EXPECT_FALSE(memberships[rank]->allgather);
  }
  EXPECT_TRUE(share_memory(*memberships[0], *memberships[2]));
}

TEST(WireUp, over_two_nodes_gives_the_ranks_of_each_a_memory_of_their_own) {
  Outcomes outcomes = meet_as_job({"fox", "owl", "owl", "fox", "owl"});
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 5u);
  for (const std::uint32_t rank : {0, 3}) EXPECT_THAT(memberships[rank]->here.ranks(), ElementsAre(0, 3));
  for (const std::uint32_t rank : {1, 2, 4}) EXPECT_THAT(memberships[rank]->here.ranks(), ElementsAre(1, 2, 4));
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(memberships[rank]->rank, rank);
    EXPECT_EQ(memberships[rank]->size, 5u);
    EXPECT_EQ(memberships[rank]->map.text(), "ranks 0, 3 on fox; ranks 1-2, 4 on owl");
    EXPECT_EQ(memberships[rank]->segment->ranks(), memberships[rank]->here.count());
  }
  EXPECT_TRUE(share_memory(*memberships[0], *memberships[3]));
  EXPECT_TRUE(share_memory(*memberships[1], *memberships[4]));
  EXPECT_FALSE(share_memory(*memberships[0], *memberships[1]));
}

TEST(WireUp, over_two_nodes_writes_each_process_down_at_its_place_in_its_node) {
  Outcomes outcomes = meet_as_job({"fox", "owl", "owl"});
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 3u);
  EXPECT_EQ(memberships[0]->segment->rank(0).pid.load(), getpid());
  EXPECT_EQ(memberships[1]->segment->rank(1).pid.load(), getpid());
}

TEST(WireUp, over_two_nodes_gives_all_ranks_the_secret_of_the_first) {
  Outcomes outcomes = meet_as_job({"fox", "owl"});
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 2u);
  EXPECT_EQ(memberships[0]->secret, memberships[1]->secret);
  EXPECT_THAT(memberships[0]->secret, testing::Contains(testing::Ne(std::byte{0})));
}

TEST(WireUp, over_two_nodes_leaves_an_allgather_for_what_the_ranks_tell_each_other_next) {
  const Outcomes outcomes =
      meet_on({"fox", "owl"}, [](std::uint32_t rank, const Settings& settings, const Allgather& allgather) {
        Result<Membership> membership = join_by_allgather(rank, 2, allgather, settings);
        EXPECT_TRUE(membership.is_ok());
        const std::uint32_t mine = 10 + rank;
        std::uint32_t all[2] = {};
        EXPECT_TRUE(membership.value().allgather(&mine, all, sizeof mine).is_ok());
        EXPECT_THAT(all, ElementsAre(10, 11));
        return membership;
      });
  EXPECT_EQ(outcomes.size(), 2u);
}

TEST(WireUp, refuses_more_ranks_than_a_job_may_have_before_it_meets_anybody) {
  const Allgather nobody = [](const void*, void*, std::size_t) -> Status { return {Code::system, "asked"}; };
  Result<Membership> membership = join_by_allgather(0, 65'537, nobody, on_node(""));
  EXPECT_EQ(membership.take_status().text(), "farsum_init: the job has 65537 ranks; there may be 65536 at most");
}

constexpr std::array<std::byte, 16> a_secret = {std::byte{7}, std::byte{9}};

TEST(WireUpOfANode, knows_its_ranks_by_their_place_in_the_job_and_nobody_else) {
  Outcomes outcomes =
      meet_on({"fox", "fox"}, [](std::uint32_t rank, const Settings& settings, const Allgather& allgather) {
        return join_by_node_allgather(rank, 2, allgather, {5 + 2 * rank, 12, a_secret}, settings);
      });
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 2u);
  EXPECT_EQ(memberships[1]->rank, 7u);
  EXPECT_EQ(memberships[1]->size, 12u);
  EXPECT_THAT(memberships[1]->here.ranks(), ElementsAre(5, 7));
  EXPECT_EQ(memberships[1]->map.ranks(), 0u);
  EXPECT_EQ(memberships[1]->secret, a_secret);
  EXPECT_FALSE(memberships[1]->allgather);
  EXPECT_TRUE(share_memory(*memberships[0], *memberships[1]));
}

TEST(WireUpOfANode, takes_ranks_that_share_no_memory_with_it_for_remote_ones) {
  Outcomes outcomes =
      meet_on({"fox", "owl", "fox"}, [](std::uint32_t rank, const Settings& settings, const Allgather& allgather) {
        return join_by_node_allgather(rank, 3, allgather, {rank, 4, a_secret}, settings);
      });
  const std::vector<Membership*> memberships = memberships_of(outcomes);
  ASSERT_EQ(memberships.size(), 3u);
  EXPECT_THAT(memberships[2]->here.ranks(), ElementsAre(0, 2));
  EXPECT_THAT(memberships[1]->here.ranks(), ElementsAre(1));
}

TEST(WireUpOfANode, refuses_two_processes_that_are_the_same_rank_of_the_job) {
  Outcomes outcomes =
      meet_on({"fox", "fox"}, [](std::uint32_t rank, const Settings& settings, const Allgather& allgather) {
        return join_by_node_allgather(rank, 2, allgather, {3, 4, a_secret}, settings);
      });
  for (auto& outcome : outcomes) {
    ASSERT_FALSE(outcome->is_ok());
    EXPECT_THAT(outcome->take_status().text(), HasSubstr("rank 1 of 2 here says it is rank 3 of a job of 4"));
  }
}

}  // namespace
}  // namespace farsum
