// When the extents of calls that nobody waits for are given back.
#include "collectives/carried_extents.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "carried_node.hpp"

namespace farsum {
namespace {

class Extents : public testing::Test {
 protected:
  Extents() {
    for (auto& member : node_.members) extents.emplace_back(member.memory, member.help);
    all_ = node_.extents.cut(4096);
    own_ = node_.extents.cut(4096);
  }
  CarriedNode::Member& member(std::uint32_t rank) { return node_.members[rank]; }
  int open() const { return node_.extents.open(); }
  // Of a call to which this rank has brought much, and of which all get much.
  CarriedRequest request_of(std::uint32_t rank) const {
    CarriedRequest request;
    request.own = rank == 0 ? all_ : own_;
    request.all = all_;
    return request;
  }

 private:
  Mailboxes boxes_;
  CarriedNode node_{{0, 0}, 0, boxes_};
  CarriedExtent all_, own_;

 protected:
  std::deque<CarriedExtents> extents;
};

TEST_F(Extents, with_an_answer_go_with_the_last_to_fetch_and_others_with_their_rank) {
  extents[0].let_go(request_of(0));
  EXPECT_EQ(open(), 2);
  extents[1].let_go(request_of(1));
  EXPECT_EQ(open(), 0);
}

TEST_F(Extents, are_counted_later_where_their_head_cannot_be_mapped) {
  member(1).help.can_reach = false;
  extents[1].let_go(request_of(1));
  extents[0].let_go(request_of(0));
  EXPECT_EQ(open(), 1);
  member(1).help.can_reach = true;
  extents[1].let_go(CarriedRequest());
  EXPECT_EQ(open(), 0);
}

TEST_F(Extents, are_counted_at_the_end_where_no_request_comes) {
  extents[0].let_go(request_of(0));
  member(1).help.can_reach = false;
  extents[1].let_go(request_of(1));
  member(1).help.can_reach = true;
  extents[1].give_back_kept();
  EXPECT_EQ(open(), 0);
}

// Others may read them.
TEST_F(Extents, of_a_broken_group_are_kept_until_its_end) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    CarriedRequest request = request_of(rank);
    request.found.what = CarriedFinding::What::garbled;
    extents[rank].let_go(request);
  }
  EXPECT_EQ(open(), 2);
  for (auto& of_rank : extents) of_rank.give_back_kept();
  EXPECT_EQ(open(), 0);
}

}  // namespace
}  // namespace farsum
