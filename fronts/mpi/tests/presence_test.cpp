// When a thread that polls attends, with times that the test makes up.
#include "presence.hpp"

#include <gtest/gtest.h>

namespace farsum::mpi {
namespace {

constexpr std::uint64_t a_poll = 5'000;  // some 2 us
constexpr std::uint64_t a_blink = 2 * Presence::longest_gap;

// A thread that polls, and does as it is told.
class Poller {
 public:
  // One poll after so many ticks; it attends if that is the advice.
  Presence::Advice poll_after(std::uint64_t ticks) {
    now_ += ticks;
    const Presence::Advice advice = presence_.poll(now_, attends_, std::exchange(is_new_, false));
    if (advice == Presence::Advice::begin) presence_.begun(now_);
    attends_ = advice == Presence::Advice::begin || advice == Presence::Advice::attend;
    return advice;
  }
  // Polls for so long without a break; for how much of that it attended.
  std::uint64_t poll_for(std::uint64_t ticks) {
    std::uint64_t attended = 0;
    for (std::uint64_t end = now_ + ticks; now_ < end;) {
      const bool did = attends_;
      poll_after(a_poll);
      if (did && attends_) attended += a_poll;
    }
    return attended;
  }
  void serve_for(std::uint64_t ticks) {
    now_ += ticks;
    presence_.served(now_);
  }
  bool attends() const { return attends_; }

 private:
  Presence presence_;
  std::uint64_t now_ = 1'000'000'000;
  bool attends_ = false;
  bool is_new_ = true;
};

TEST(Presence, begins_once_it_has_polled_for_a_while) {
  Poller poller;
  EXPECT_EQ(poller.poll_for(Presence::patience), 0u);
  EXPECT_FALSE(poller.attends());
  poller.poll_for(2 * a_poll);
  EXPECT_TRUE(poller.attends());
}

TEST(Presence, what_was_served_is_no_time_away) {
  Poller poller;
  poller.poll_for(2 * Presence::patience);
  ASSERT_TRUE(poller.attends());
  for (int i = 0; i < 100; ++i) {
    poller.serve_for(10 * Presence::longest_gap);
    EXPECT_EQ(poller.poll_after(a_poll), Presence::Advice::attend);
  }
}

TEST(Presence, stops_where_it_is_away_before_it_was_there_for_long) {
  Poller poller;
  poller.poll_for(2 * Presence::patience);
  ASSERT_TRUE(poller.attends());
  EXPECT_EQ(poller.poll_after(a_blink), Presence::Advice::stop);
  EXPECT_EQ(poller.poll_for(Presence::least_pause - a_poll), 0u);
}

// Every interruption once doubled the pause, however seldom they came: in a wait of a second nobody attended any more.
TEST(Presence, goes_on_where_it_is_away_seldom) {
  Poller poller;
  const std::uint64_t between = 4 * Presence::share_away * a_blink;
  poller.poll_for(2 * between);
  std::uint64_t attended = 0;
  constexpr int times = 200;
  for (int i = 0; i < times; ++i) {
    poller.poll_after(a_blink);
    attended += poller.poll_for(between);
  }
  EXPECT_EQ(attended, times * between / a_poll * a_poll);
}

TEST(Presence, leaves_it_to_the_agent_where_it_is_away_for_half_of_the_time) {
  Poller poller;
  const std::uint64_t slice = 4 * Presence::least_pause;
  std::uint64_t attended = 0;
  constexpr int times = 200;
  for (int i = 0; i < times; ++i) {
    poller.poll_after(slice);
    attended += poller.poll_for(slice);
  }
  EXPECT_LT(attended, times * slice / 10);
}

TEST(Presence, begins_soon_again_after_a_long_absence_that_was_the_first_in_a_long_time) {
  Poller poller;
  const std::uint64_t slice = 4 * Presence::least_pause;
  for (int i = 0; i < 20; ++i) {
    poller.poll_after(slice);
    poller.poll_for(slice);
  }
  // By now the pauses are at their longest.
  poller.poll_for((Presence::share_away + 2) * Presence::most_pause);
  ASSERT_TRUE(poller.attends());
  EXPECT_EQ(poller.poll_after(2 * Presence::most_credit), Presence::Advice::stop);
  poller.poll_for(Presence::least_pause + 2 * a_poll);
  EXPECT_TRUE(poller.attends());
}

}  // namespace
}  // namespace farsum::mpi
