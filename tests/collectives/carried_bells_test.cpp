// Who is told of what becomes of a place in which calls that nobody waits for are under way.
#include "collectives/carried_bells.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carried_node.hpp"

namespace farsum {
namespace {

using Room = CarriedBells::Room;
using testing::ElementsAre;
using testing::IsEmpty;

class Bells : public testing::Test {
 protected:
  CarriedNode::Member& first() { return node_.members[0]; }
  CarriedNode::Member& second() { return node_.members[1]; }

  static constexpr std::uint64_t next = CarriedMemory::places;  // the next call in the place of call 0

 private:
  Mailboxes boxes_;
  CarriedNode node_{{0, 0, 0}, 0, boxes_};
};

TEST_F(Bells, ring_nobody_of_a_place_that_nobody_wants) {
  EXPECT_EQ(first().bells.want(0), Room::open);
  first().bells.conclude(0);
  first().bells.close(first().memory.place(0));
  EXPECT_EQ(first().bells.want(next), Room::open);
  EXPECT_THAT(first().help.rung, IsEmpty());
}

TEST_F(Bells, ring_all_others_when_a_wanted_place_has_its_answer_and_when_it_opens) {
  EXPECT_EQ(second().bells.want(next), Room::taken);
  first().bells.conclude(0);
  EXPECT_TRUE(first().memory.has_outcome(0));
  EXPECT_THAT(first().help.rung, ElementsAre(1, 2));
  second().bells.close(second().memory.place(0));
  EXPECT_THAT(second().help.rung, ElementsAre(0, 2));
  EXPECT_EQ(second().bells.want(next), Room::open);
}

TEST_F(Bells, ring_all_others_once_where_an_answer_is_there_when_its_place_is_first_wanted) {
  first().bells.conclude(0);
  EXPECT_EQ(second().bells.want(next), Room::to_fetch);
  EXPECT_THAT(second().help.rung, ElementsAre(0, 2));
  EXPECT_EQ(second().bells.want(next), Room::taken);
  EXPECT_EQ(first().bells.want(next), Room::taken);
  EXPECT_THAT(second().help.rung, ElementsAre(0, 2));
}

TEST_F(Bells, wake_whoever_sleeps_for_the_call_or_for_any_of_a_broken_group) {
  EventCount& events = second().bells.of(0);
  EXPECT_EQ(&events, &first().memory.place(0).events);
  for (const bool is_broken : {false, true}) {
    const std::uint32_t key = events.prepare();
    if (is_broken)
      first().bells.break_group({2, CarriedFinding::What::cut_off, {}, {}});
    else
      first().bells.conclude(0);
    events.wait(key, 0);  // would hang
  }
  ASSERT_TRUE(second().memory.broken().found());
  EXPECT_EQ(second().memory.broken().found()->rank, 2u);
}

TEST(BellsOfSeveralNodes, wake_the_first_rank_where_letters_do_and_others_at_the_place) {
  Mailboxes boxes;
  CarriedNode node({0, 0, 1}, 0, boxes);
  EXPECT_EQ(&node.members[0].bells.of(1), &node.members[0].waiter.own_events());
  EXPECT_EQ(&node.members[1].bells.of(1), &node.members[1].memory.place(1).events);
}

}  // namespace
}  // namespace farsum
