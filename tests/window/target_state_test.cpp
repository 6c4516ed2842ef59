// What is kept of each target beside what the hot path reads, and the statistics of what went where.
#include "window/target_state.hpp"

#include <gtest/gtest.h>

#include <array>

#include "window/path_counters.hpp"
#include "window/traffic.hpp"

namespace farsum {
namespace {

TEST(TargetStates, of_a_new_window_have_nothing_to_tell) {
  const TargetState state;
  EXPECT_EQ(state.remote_bytes, 0);
  EXPECT_EQ(state.copied, nullptr);
  EXPECT_FALSE(state.awaits_post.load());
  EXPECT_FALSE(state.lock_is_unsure.load());
  EXPECT_FALSE(state.ordered.load());
  EXPECT_FALSE(state.changes.are_unheard(state.changes.made()));
}

TEST(TargetStates, know_changes_until_they_were_flushed_and_then_heard_of) {
  TargetState state;
  state.changes.count();
  const std::uint64_t flushed = state.changes.made();
  state.changes.count();
  state.changes.note_heard(flushed);
  EXPECT_FALSE(state.changes.are_unheard(flushed));
  EXPECT_TRUE(state.changes.are_unheard(state.changes.made())) << "the second was not flushed";
  state.changes.note_heard(state.changes.made());
  state.changes.note_heard(flushed);
  EXPECT_FALSE(state.changes.are_unheard(state.changes.made())) << "an older hearing came late";
}

class OrderMarksOfThree : public testing::Test {
 protected:
  std::array<TargetState, 3> states;
  OrderMarks marks{states.data(), 3};
};

TEST_F(OrderMarksOfThree, are_at_all_targets_until_each_is_cleared) {
  marks.mark_all();
  marks.clear(1);
  EXPECT_TRUE(marks.is_marked(0));
  EXPECT_FALSE(marks.is_marked(1));
  EXPECT_TRUE(marks.is_marked(2));
  EXPECT_TRUE(marks.is_marked(0)) << "looking clears nothing";
}

TEST_F(OrderMarksOfThree, are_taken_once) {
  EXPECT_FALSE(marks.take(0));
  marks.mark_all();
  EXPECT_TRUE(marks.take(0));
  EXPECT_FALSE(marks.take(0));
  EXPECT_TRUE(marks.take(2));
}

TEST_F(OrderMarksOfThree, end_at_the_last_target) {
  OrderMarks of_two(states.data(), 2);
  of_two.mark_all();
  EXPECT_FALSE(states[2].ordered.load());
}

TEST_F(OrderMarksOfThree, leave_what_other_parts_say_of_the_target) {
  states[0].lock_is_unsure.store(true);
  states[0].awaits_post.store(true);
  marks.mark_all();
  (void)marks.take(0);
  marks.clear(0);
  EXPECT_TRUE(states[0].lock_is_unsure.load());
  EXPECT_TRUE(states[0].awaits_post.load());
  EXPECT_FALSE(states[1].lock_is_unsure.load());
}

TEST(PathCounters, count_operations_and_bytes_of_each_path_apart) {
  PathCounters counters;
  counters.count(Path::offload, 24);
  counters.count(Path::offload, 0);
  counters.count(Path::direct, 8);
  for (std::size_t path = 0; path < path_count; ++path) {
    const bool is_card = path == static_cast<std::size_t>(Path::offload);
    const bool is_direct = path == static_cast<std::size_t>(Path::direct);
    EXPECT_EQ(counters.operations[path].load(), is_card ? 2 : is_direct ? 1 : 0) << path;
    EXPECT_EQ(counters.bytes[path].load(), is_card ? 24 : is_direct ? 8 : 0) << path;
  }
}

TEST(TrafficOfViews, has_words_of_eight_bytes_among_what_the_hot_path_finished) {
  std::array<TargetView, 2> views;
  count_word(views[0]);
  count_word(views[0]);
  count_direct(views[0], 100);
  count_direct(views[1], 1);
  count_other(views[0], 1000);
  EXPECT_EQ(hot_traffic(views[0]).operations, 3);
  EXPECT_EQ(hot_traffic(views[0]).bytes, 116);
  EXPECT_EQ(hot_traffic(views).operations, 4);
  EXPECT_EQ(hot_traffic(views).bytes, 117);
  EXPECT_EQ(traffic(views[0]).operations, 4);
  EXPECT_EQ(traffic(views[0]).bytes, 1116);
  EXPECT_EQ(traffic(views[1]).operations, 1);
}

}  // namespace
}  // namespace farsum
