#include "runtime/list_hash.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace farsum {
namespace {

std::uint64_t hash_of(ListHash::Purpose purpose, const std::vector<std::uint64_t>& ranks, std::uint64_t round) {
  ListHash hash(purpose);
  for (const std::uint64_t rank : ranks) hash.add(rank);
  hash.add(round);
  return hash.value();
}

TEST(ListHash, tells_two_lists_apart_whose_first_ranks_differ_as_the_purposes_do) {
  EXPECT_NE(hash_of(ListHash::of_team, {2, 5, 7}, 0), hash_of(ListHash::of_making, {1, 5, 7}, 0));
}

TEST(ListHash, tells_small_lists_purposes_and_rounds_apart) {
  std::map<std::uint64_t, int> seen;
  for (const ListHash::Purpose purpose : {ListHash::of_list, ListHash::of_team, ListHash::of_making,
                                          ListHash::of_numbered_team, ListHash::of_numbered_making}) {
    for (std::uint64_t first = 0; first < 16; ++first) {
      for (std::uint64_t second = 0; second < 16; ++second) {
        for (std::uint64_t round = 0; round < 8; ++round)
          EXPECT_EQ(++seen[hash_of(purpose, {first, second}, round)], 1);
      }
    }
  }
}

}  // namespace
}  // namespace farsum
