// Which ranks share a node, and how that is said.
#include "liveness/job_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farsum {
namespace {

using testing::HasSubstr;

std::vector<NodeIdentity> on_hosts(const std::vector<std::string>& names) {
  std::vector<NodeIdentity> identities;
  for (const std::string& name : names) identities.push_back(identify_node(name));
  return identities;
}

TEST(JobMap, numbers_nodes_by_their_lowest_ranks_and_ranks_within_each) {
  const JobMap map(on_hosts({"b", "a", "b", "b", "a"}));
  EXPECT_EQ(map.ranks(), 5u);
  EXPECT_EQ(map.nodes(), 2u);
  EXPECT_EQ(map.host_of(0), "b");
  EXPECT_EQ(map.host_of(1), "a");
  EXPECT_EQ(map.ranks_of(0), (std::vector<Rank>{0, 2, 3}));
  EXPECT_EQ(map.ranks_of(1), (std::vector<Rank>{1, 4}));
  EXPECT_EQ(map.node_of(3), 0u);
  EXPECT_EQ(map.local_rank_of(3), 2u);
  EXPECT_EQ(map.node_of(4), 1u);
  EXPECT_EQ(map.local_rank_of(4), 1u);
}

TEST(JobMap, of_processes_of_this_node_has_one_node) {
  const JobMap map(on_hosts({"", "", ""}));
  EXPECT_EQ(map.nodes(), 1u);
  EXPECT_EQ(JobMap::of_one_node(4, identify_node("")).nodes(), 1u);
}

TEST(JobMap, takes_processes_that_share_a_kernel_but_no_network_or_processes_for_different_nodes) {
  std::vector<NodeIdentity> identities = on_hosts({"", "", "", ""});
  identities[1].network_namespace += 1;
  identities[2].process_namespace += 1;
  identities[3].user_namespace += 1;
  const JobMap map(identities);
  EXPECT_EQ(map.nodes(), 4u);
}

TEST(JobMap, takes_a_host_that_was_booted_anew_for_another) {
  std::vector<NodeIdentity> identities = on_hosts({"", ""});
  identities[1].boot[0] ^= 1;
  EXPECT_EQ(JobMap(identities).nodes(), 2u);
}

TEST(JobMap, says_which_ranks_are_on_which_host) {
  EXPECT_EQ(JobMap(on_hosts({"fox", "fox", "owl", "fox"})).text(), "ranks 0-1, 3 on fox; rank 2 on owl");
}

TEST(JobMap, names_the_first_of_many_hosts) {
  std::vector<std::string> names;
  for (int host = 0; host < 12; ++host) names.push_back("h" + std::to_string(host));
  EXPECT_THAT(JobMap(on_hosts(names)).text(), HasSubstr("rank 7 on h7; others on 4 more"));
}

TEST(TextOfRanks, joins_neighbours_and_ends_after_eight_pieces) {
  EXPECT_EQ(text_of_ranks(std::vector<Rank>{4}), "rank 4");
  EXPECT_EQ(text_of_ranks(std::vector<Rank>{0, 1, 2, 5}), "ranks 0-2, 5");
  std::vector<Rank> even;
  for (Rank rank = 0; rank < 20; rank += 2) even.push_back(rank);
  EXPECT_EQ(text_of_ranks(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 2 more");
}

}  // namespace
}  // namespace farsum
