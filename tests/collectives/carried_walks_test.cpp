// What first ranks of nodes do between them for calls that nobody waits for, when their nodes' parts are whole.
#include "collectives/carried_walks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "carried_folds_of_node.hpp"

namespace farsum {
namespace {

using CallKind = CarriedCall::Kind;
using What = CarriedFinding::What;

// A node whose ranks have come.
class NodeThatWalks {
 public:
  NodeThatWalks(const std::vector<std::uint32_t>& node_of, std::uint32_t mine, Mailboxes& boxes,
                ReduceOrder order = ReduceOrder::nodes)
      : folded(node_of, mine, boxes, order),
        walks({.team = first().team,
               .memory = first().memory,
               .bells = first().bells,
               .help = first().help,
               .post = first().post,
               .kernels = ops::kernels_for_this_machine(),
               .degree = 0,
               .order = order}) {}
  CarriedNode::Member& first() { return folded.node.members[0]; }

  FoldsOfNode folded;
  CarriedWalks walks;
};

class Walks : public testing::Test {
 protected:
  // Until the call is over on both nodes.
  void walk(std::uint64_t number) {
    bool is_over = false;
    for (int looks = 0; !is_over && looks < 1000; ++looks) {
      is_over = true;
      for (NodeThatWalks& node : nodes) {
        (void)node.walks.walk();
        is_over &= node.folded.is_over(number);
      }
    }
    ASSERT_TRUE(is_over);
  }

 private:
  const std::vector<std::uint32_t> node_of_ = {0, 1, 0, 1};
  Mailboxes boxes_;

 protected:
  NodeThatWalks first_{node_of_, 0, boxes_}, second_{node_of_, 1, boxes_};
  const std::array<std::reference_wrapper<NodeThatWalks>, 2> nodes = {first_, second_};
};

TEST_F(Walks, make_the_parts_of_nodes_the_answer_of_all_in_any_place) {
  for (std::uint64_t number = 0; number < CarriedMemory::places; ++number) {
    CarriedCall call;
    for (NodeThatWalks& node : nodes) {
      call = node.folded.leave(CallKind::allreduce, 3, number);
      EXPECT_FALSE(node.walks.walk());
      node.folded.folds[0].begin(number);
    }
    walk(number);
    for (NodeThatWalks& node : nodes) EXPECT_EQ(node.folded.answer(number, call, 0), 6u);
  }
}

TEST_F(Walks, tell_all_nodes_that_ranks_of_one_have_said_another_thing) {
  first_.folded.leave(CallKind::allreduce, 3, 0);
  second_.folded.leave(CallKind::allreduce, 4, 0);
  for (NodeThatWalks& node : nodes) node.folded.folds[0].begin(0);
  walk(0);
  for (NodeThatWalks& node : nodes) EXPECT_EQ(node.folded.place(0).found.what, What::another_call);
}

TEST_F(Walks, begin_none_in_a_broken_group_whose_calls_end_so) {
  first_.first().memory.broken().set({1, What::cut_off, {}, {}});
  first_.folded.leave(CallKind::allreduce, 3, 0);
  first_.folded.folds[0].begin(0);
  EXPECT_TRUE(first_.walks.walk());
  EXPECT_TRUE(first_.folded.is_over(0));
  EXPECT_EQ(first_.folded.place(0).found.what, What::cut_off);
}

TEST_F(Walks, ring_the_agent_once_of_a_letter_without_room) {
  bool was_refused = false;
  for (std::uint64_t number = 0; number < 16 * CarriedMemory::places && !was_refused; ++number) {
    for (NodeThatWalks& node : nodes) {
      node.folded.leave(CallKind::allreduce, 3, number);
      node.folded.folds[0].begin(number);
    }
    (void)first_.walks.walk();
    was_refused = first_.walks.is_refused();
    EXPECT_EQ(first_.first().help.rung.size(), was_refused ? 1u : 0u);
    walk(number);
    for (NodeThatWalks& node : nodes) node.folded.close(number);
  }
  EXPECT_TRUE(was_refused);
}

TEST(WalksByRanks, say_that_a_rank_cannot_map_what_others_bring) {
  Mailboxes boxes;
  NodeThatWalks first({0, 0, 1}, 0, boxes, ReduceOrder::ranks), second({0, 0, 1}, 1, boxes, ReduceOrder::ranks);
  for (NodeThatWalks* const node : {&first, &second}) {
    node->folded.leave(CallKind::allreduce, 5'000, 0, {.order = ReduceOrder::ranks});
    node->folded.folds[0].begin(0);
  }
  first.first().help.can_reach = false;
  for (int looks = 0; looks < 1000; ++looks) {
    for (NodeThatWalks* const node : {&first, &second}) (void)node->walks.walk();
  }
  for (NodeThatWalks* const node : {&first, &second}) {
    EXPECT_TRUE(node->folded.is_over(0));
    EXPECT_EQ(node->folded.place(0).found.what, What::lacks_memory);
    EXPECT_EQ(node->folded.place(0).found.rank, 0u);
  }
}

}  // namespace
}  // namespace farsum
