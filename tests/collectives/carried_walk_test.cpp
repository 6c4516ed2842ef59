// What a node walks for collectives that nobody waits for, by itself: whole calls are in carry_test.cpp.
#include "collectives/carried_walk.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "base/group_places.hpp"
#include "collectives/group_team.hpp"
#include "mailboxes.hpp"
#include "ops/kernels.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

GroupPlaces places_of_first_node(std::uint32_t nodes, std::uint32_t members) {
  GroupPlaces places;
  places.here.resize(members);
  std::iota(places.here.begin(), places.here.end(), 0U);
  for (std::uint32_t node = 1; node < nodes; ++node) {
    GroupPlaces::Node& other = places.remote.emplace_back();
    other.first = node * members;
    other.members.resize(members);
    std::iota(other.members.begin(), other.members.end(), node * members);
  }
  return places;
}

// Of 16 nodes a letter of the last round of dissemination is about eight. Heads of blocking calls are shorter than
// those of others.
TEST(CarriedWalk, has_a_byte_of_each_member_in_a_letter_however_many_there_are) {
  for (const std::uint32_t members : {3999U, 4000U, 4001U, 4088U, 4092U, 4093U}) {
    SleepingWaiter waiter;
    Mailboxes boxes;
    Post post(boxes, 0, waiter);
    const GroupTeam team(places_of_first_node(16, members), 0, &post, waiter);
    const CarriedLists lists(team, ops::kernels_for_this_machine(), 0);
    EXPECT_EQ(lists.most_gathered(), members <= 4000 ? 8 * members : members);
    const CarriedWalk walk(lists, post, 7);
    EXPECT_TRUE(walk.is_over());
  }
}

}  // namespace
}  // namespace farsum
