#include "yield_budget.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace farsum::mpi {
namespace {

using Job = YieldBudget::Job;

constexpr std::uint64_t begin = 1'000'000;
constexpr std::uint64_t slice = YieldBudget::shortest_slice;

// When it may yield again that yielded at `begin` and was away for so long; 0: at once.
std::uint64_t work_after(Job job, std::uint64_t away) {
  YieldBudget budget;
  budget.yielded(job, begin, begin + away);
  if (budget.allows(begin + away)) return 0;
  const std::uint64_t each =
      job == Job::is_crowded ? YieldBudget::work_for_each_if_crowded : YieldBudget::work_for_each;
  const std::uint64_t owed = each * std::min(away, YieldBudget::longest_slice);
  EXPECT_FALSE(budget.allows(begin + away + owed - 1));
  EXPECT_TRUE(budget.allows(begin + away + owed));
  return owed;
}

TEST(YieldBudget, allows_the_first_yield) { EXPECT_TRUE(YieldBudget().allows(begin)); }

TEST(YieldBudget, has_a_thread_work_for_fifty_times_as_long_as_others_took) {
  for (const std::uint64_t away : {std::uint64_t{300}, slice - 1, slice, 3 * slice})
    EXPECT_EQ(work_after(Job::has_processors, away), 50 * away) << away;
}

TEST(YieldBudget, takes_no_account_in_a_crowded_job_of_who_gives_the_processor_back) {
  EXPECT_EQ(work_after(Job::is_crowded, slice - 1), 0U);
  EXPECT_EQ(work_after(Job::is_crowded, slice), 2 * slice);
}

TEST(YieldBudget, does_not_count_how_long_a_process_was_stopped) {
  EXPECT_EQ(work_after(Job::has_processors, 1000 * slice), 50 * YieldBudget::longest_slice);
}

TEST(YieldBudget, remembers_the_last_yield_alone) {
  YieldBudget budget;
  budget.yielded(Job::has_processors, begin, 2 * begin);
  budget.yielded(Job::has_processors, 60 * begin, 60 * begin + 1);
  EXPECT_TRUE(budget.allows(60 * begin + 1 + YieldBudget::work_for_each));
}

// Whatever others take, a thread that yields whenever it may keeps the rest of its time.
TEST(YieldBudget, leaves_a_thread_that_always_yields_its_time) {
  const std::pair<Job, std::uint64_t> jobs[] = {{Job::has_processors, YieldBudget::work_for_each},
                                                {Job::is_crowded, YieldBudget::work_for_each_if_crowded}};
  for (const auto& [job, each] : jobs) {
    YieldBudget budget;
    std::uint64_t now = begin;
    std::uint64_t away = 0;
    for (int look = 0; look < 100'000; ++look) {
      now += slice / 40;
      if (!budget.allows(now)) continue;
      budget.yielded(job, now, now + slice);
      now += slice;
      away += slice;
    }
    EXPECT_LE(away, (now - begin) / each);
    EXPECT_GE(away, (now - begin) / (2 * each));
  }
}

}  // namespace
}  // namespace farsum::mpi
