// Counts that a rank raises in another's part: whom they wake, who waits for them, and which there are.
#include "window/notifications.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;

// Three ranks, of which the last is of another node; this is the second.
class NotifiedRanks : public testing::Test {
 protected:
  static constexpr std::uint32_t neighbour = 0, me = 1, stranger = 2;

  static constexpr WindowSharedShape shape{.ranks = 3, .notification_slots = 2, .most_regions = 1, .locks = 1};
  struct alignas(2 * cache_line_bytes) Part {
    std::array<std::byte, 4096> bytes{};
  };
  std::atomic<std::uint64_t>& count(std::uint32_t target, std::uint32_t slot) {
    return shared_[target].notifications()[slot];
  }

  ScriptedWaiter waiter;
  std::vector<Rank> woken;
  std::vector<std::uint64_t> seen;  // in the neighbour's last slot, by whoever was woken

 private:
  std::array<Part, 2> parts_;
  std::array<RankWindow, 3> shared_ = {RankWindow(parts_[0].bytes.data(), shape),
                                       RankWindow(parts_[1].bytes.data(), shape), RankWindow()};
  std::vector<Rank> ranks_ = {7, 4, 2};
  std::function<void(Rank)> wake_ = [this](Rank rank) {
    woken.push_back(rank);
    seen.push_back(count(neighbour, 1));
  };

 protected:
  Notifications notifications{{.window = 9,
                               .my_rank = me,
                               .slots = 2,
                               .ranks = ranks_,
                               .shared = shared_,
                               .wake_rank = wake_,
                               .waiter = waiter}};
};

TEST_F(NotifiedRanks, are_of_this_node) {
  ASSERT_LE(shape.rank_bytes(), sizeof(Part));
  EXPECT_TRUE(notifications.reach(neighbour));
  EXPECT_TRUE(notifications.reach(me));
  EXPECT_FALSE(notifications.reach(stranger));
}

TEST_F(NotifiedRanks, find_one_more_in_the_slot_and_are_woken) {
  notifications.raise(neighbour, 1);
  notifications.raise(neighbour, 1);
  EXPECT_EQ(count(neighbour, 1), 2);
  EXPECT_EQ(count(neighbour, 0), 0);
  EXPECT_EQ(count(me, 1), 0);
  EXPECT_THAT(woken, ElementsAre(7, 7)) << "ranks are the job's";
  EXPECT_THAT(seen, ElementsAre(1, 2)) << "it was woken before there was anything";
}

TEST_F(NotifiedRanks, do_not_wait_for_what_has_come) {
  count(me, 1) = 3;
  EXPECT_EQ(notifications.wait(1, 3).text(), "");
  EXPECT_EQ(notifications.wait(0, 0).text(), "");
  EXPECT_EQ(waiter.waits, 0);
}

TEST_F(NotifiedRanks, wait_until_as_many_have_come_in_their_slot) {
  waiter.then([this] { count(me, 0) = 9; }).then([this] { notifications.raise(me, 1); }).then([this] {
    notifications.raise(me, 1);
  });
  EXPECT_EQ(notifications.wait(1, 2).text(), "");
  EXPECT_TRUE(waiter.is_through());
  std::uint64_t value = 0;
  EXPECT_EQ(notifications.value(1, value).text(), "");
  EXPECT_EQ(value, 2);
}

TEST_F(NotifiedRanks, are_told_when_the_wait_fails) {
  EXPECT_EQ(notifications.wait(0, 1).text(), "farsum_notify_wait: nothing happens any more");
}

TEST_F(NotifiedRanks, have_no_more_slots_than_the_window) {
  const Status wait = notifications.wait(2, 0);
  EXPECT_EQ(wait.code(), Code::range);
  EXPECT_EQ(wait.text(), "farsum_notify_wait: window 9: slot 2 was asked for, but the window has 2 (0 to 1)");
  std::uint64_t value = 5;
  const Status read = notifications.value(2, value);
  EXPECT_EQ(read.code(), Code::range);
  EXPECT_EQ(read.text(), "farsum_notify_value: window 9: slot 2 was asked for, but the window has 2");
  EXPECT_EQ(value, 5);
}

}  // namespace
}  // namespace farsum
