// Which groups an agent's turn visits, and what threads that come at once do.
#include "runtime/carries.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

namespace farsum {
namespace {

class TurnsOfTest final : public CarriedTurns {
 public:
  Turn take_turn(Folding folding) noexcept override {
    ++visits;
    folds += folding == Folding::done;
    if (within) within();
    Turn turn;
    turn.is_unfinished = has_much_to_fold && folding == Folding::done;
    return turn;
  }

  std::atomic<int> visits{0};
  int folds = 0;
  bool has_much_to_fold = false;
  std::function<void()> within;
};

TEST(Carries, visits_only_groups_with_calls_under_way) {
  Carries carries;
  TurnsOfTest idle, busy, later;
  const Carries::Entry of_idle = carries.add(idle), of_busy = carries.add(busy), of_later = carries.add(later);
  carries.count_under_way(of_idle, 1);
  carries.count_under_way(of_idle, -1);
  carries.count_under_way(of_busy, 2);
  (void)carries.take_turns();
  carries.count_under_way(of_later, 1);
  carries.count_under_way(of_busy, -1);
  (void)carries.take_turns();
  EXPECT_EQ(idle.visits, 0);
  EXPECT_EQ(busy.visits, 2);
  EXPECT_EQ(later.visits, 1);
  carries.count_under_way(of_busy, -1);
  carries.count_under_way(of_idle, 1);
  carries.remove(of_later);
  (void)carries.take_turns();
  EXPECT_EQ(idle.visits, 1);
  EXPECT_EQ(busy.visits, 2);
  EXPECT_EQ(later.visits, 1);
}

TEST(Carries, folds_for_one_group_a_turn_and_for_each_in_its_turn) {
  Carries carries;
  TurnsOfTest all[3];
  for (TurnsOfTest& one : all) {
    one.has_much_to_fold = true;
    carries.count_under_way(carries.add(one), 1);
  }
  for (int turns = 1; turns <= 3; ++turns) {
    EXPECT_TRUE(carries.take_turns().is_unfinished);
    for (const TurnsOfTest& one : all) EXPECT_EQ(one.visits, turns);
  }
  for (const TurnsOfTest& one : all) EXPECT_EQ(one.folds, 1);
}

TEST(Carries, has_who_takes_turns_do_so_again_for_another_thread_that_does_not_wait) {
  Carries carries;
  TurnsOfTest turns;
  carries.count_under_way(carries.add(turns), 1);
  turns.within = [&] {
    if (turns.visits == 1) std::thread([&] { EXPECT_FALSE(carries.take_turns().is_unfinished); }).join();
  };
  (void)carries.take_turns();
  EXPECT_EQ(turns.visits, 2);
}

TEST(Carries, lets_others_come_and_go_while_a_group_has_its_turn) {
  Carries carries;
  TurnsOfTest turns, goes, comes;
  carries.count_under_way(carries.add(turns), 1);
  const Carries::Entry of_goes = carries.add(goes);
  carries.count_under_way(of_goes, 1);
  turns.within = [&] {
    if (turns.visits != 1) return;
    std::thread([&] {
      carries.remove(of_goes);
      carries.count_under_way(carries.add(comes), 1);
    }).join();
  };
  (void)carries.take_turns();
  EXPECT_EQ(goes.visits, 0);
  (void)carries.take_turns();
  EXPECT_GE(comes.visits, 1);
}

// Begins a turn of the group and has it removed meanwhile, by `as_who`, who calls what removes it. Whether the turn had
// ended when it was; false where it was not removed.
bool is_removed_behind_its_turn(const std::function<void(const std::function<void()>& remove)>& as_who) {
  Carries carries;
  TurnsOfTest turns;
  const Carries::Entry entry = carries.add(turns);
  carries.count_under_way(entry, 1);
  std::latch has_begun(1), is_about_to_remove(1);
  std::atomic<bool> has_ended{false};
  turns.within = [&] {
    has_begun.count_down();
    is_about_to_remove.wait();
    for (int i = 0; i < 10; ++i) std::this_thread::yield();
    has_ended = true;
  };
  std::thread agent([&] { (void)carries.take_turns(); });
  has_begun.wait();
  bool is_behind = false;
  as_who([&] {
    is_about_to_remove.count_down();
    carries.remove(entry);
    is_behind = has_ended;
  });
  agent.join();
  return is_behind;
}

TEST(Carries, removes_a_group_when_its_turn_has_ended) {
  for (int round = 0; round < 100; ++round)
    ASSERT_TRUE(is_removed_behind_its_turn([](const auto& remove) { remove(); }));
}

// A cancelled thread is to find the group's turn under way in one round at least.
TEST(Carries, removes_a_group_whole_though_the_thread_that_waits_for_its_turn_is_cancelled) {
  const auto as_cancelled = [](const std::function<void()>& remove) {
    std::thread([&] {
      pthread_cancel(pthread_self());
      remove();
    }).join();
  };
  for (int round = 0; round < 100; ++round) ASSERT_TRUE(is_removed_behind_its_turn(as_cancelled));
}

}  // namespace
}  // namespace farsum
