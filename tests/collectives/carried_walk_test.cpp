// What a node walks for collectives that nobody waits for, by itself: whole calls are in carry_test.cpp.
#include "collectives/carried_walk.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

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
    const CarriedLists lists(team, ops::kernels_for_this_machine(), 0, ReduceOrder::nodes);
    EXPECT_EQ(lists.most_gathered(), members <= 4000 ? 8 * members : members);
    const CarriedWalk walk(lists, post, 7);
    EXPECT_TRUE(walk.is_over());
  }
}

// Two nodes to which ranks are dealt out in turn: a letter holds one element of each rank of a node.
class WalkByRanks {
 public:
  WalkByRanks(Mailboxes& boxes, std::uint32_t ranks, std::uint32_t node)
      : size_(ranks),
        post_(boxes, node, waiter_),
        team_(places_of(in_turn(ranks), node), node, &post_, waiter_),
        lists_(team_, ops::kernels_for_this_machine(), 0, ReduceOrder::ranks),
        walk_(lists_, post_, 7),
        node_(node),
        parts_(ranks / 2, reinterpret_cast<const std::byte*>(&one_)) {}

  void begin() {
    const CarriedCall sum = {.kind = CarriedCall::Kind::allreduce,
                             .type = ops::ElementType::uint64,
                             .op = ops::Operator::sum,
                             .count = 1,
                             .order = ReduceOrder::ranks};
    walk_.begin(said_of(sum, 0), node_, size_, reinterpret_cast<std::byte*>(&answer_), found_, parts_);
  }
  bool go_on() { return walk_.go_on(); }
  CarriedFinding::What found() const { return found_.what; }
  std::uint64_t answer() const { return answer_; }

 private:
  static std::vector<std::uint32_t> in_turn(std::uint32_t ranks) {
    std::vector<std::uint32_t> node_of(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) node_of[rank] = rank % 2;
    return node_of;
  }

  std::uint32_t size_;
  SleepingWaiter waiter_;
  Post post_;
  GroupTeam team_;
  CarriedLists lists_;
  CarriedWalk walk_;
  std::uint32_t node_;
  std::uint64_t one_ = 1, answer_ = 0;
  std::vector<const std::byte*> parts_;
  CarriedFinding found_;
};

TEST(CarriedWalk, finds_on_all_nodes_that_a_letter_has_no_room_for_an_element_of_each_rank) {
  for (const std::uint32_t ranks : {8160U, 8162U}) {
    Mailboxes boxes;
    WalkByRanks here(boxes, ranks, 0), there(boxes, ranks, 1);
    for (WalkByRanks* const walk : {&here, &there}) walk->begin();
    bool is_over = false;
    while (!is_over) is_over = here.go_on() & there.go_on();
    for (const WalkByRanks* const walk : {&here, &there}) {
      if (ranks == 8160U) {
        EXPECT_EQ(walk->found(), CarriedFinding::What::the_same);
        EXPECT_EQ(walk->answer(), ranks);
      } else {
        EXPECT_EQ(walk->found(), CarriedFinding::What::too_scattered);
        EXPECT_EQ(told("reduce", 0, {}, {0, walk->found(), {}, {}, 0}).code(), Code::unsupported);
      }
    }
  }
}

}  // namespace
}  // namespace farsum
