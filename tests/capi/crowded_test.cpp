// Whether a job is crowded, as its ranks agree on it.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "rank_processes.hpp"

namespace farsum::test {
namespace {

std::vector<std::size_t> allowed_processors() {
  cpu_set_t set;
  std::vector<std::size_t> allowed;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (std::size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &set)) allowed.push_back(number);
  }
  return allowed;
}

bool bind_to(std::size_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

// Ranks bind themselves before they begin; what each of them then says.
void expect_crowded(int ranks, int answer, const std::function<std::size_t(int)>& processor_of) {
  Job job;
  job.ranks = ranks;
  job.starts = false;
  run_ranks(job, [&](int rank) {
    ASSERT_TRUE(bind_to(processor_of(rank)));
    EXPECT_EQ(farsum_is_crowded(), 0) << "no context lives";
    ASSERT_FINE(farsum_init(nullptr));
    EXPECT_EQ(farsum_is_crowded(), answer);
    EXPECT_FINE(farsum_barrier(farsum_world()));
    EXPECT_FINE(farsum_finalize());
  });
}

TEST(Crowded, is_a_job_whose_ranks_are_all_bound_to_one_processor) {
  const std::vector<std::size_t> allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  expect_crowded(2, 1, [&](int) { return allowed[0]; });
}

TEST(Crowded, is_no_job_whose_ranks_are_bound_to_a_processor_each) {
  const std::vector<std::size_t> allowed = allowed_processors();
  if (allowed.size() < 2) GTEST_SKIP() << "there is one processor here";
  expect_crowded(2, 0, [&](int rank) { return allowed[static_cast<std::size_t>(rank)]; });
}

TEST(Crowded, is_a_job_of_which_two_ranks_share_a_processor_and_one_has_its_own_for_all_of_them) {
  const std::vector<std::size_t> allowed = allowed_processors();
  if (allowed.size() < 3 && sysconf(_SC_NPROCESSORS_ONLN) < 3) {
    // As many ranks as that are crowded here whatever they are bound to.
    expect_crowded(3, 1, [&](int rank) { return allowed[static_cast<std::size_t>(rank) % allowed.size()]; });
    return;
  }
  expect_crowded(3, 1, [&](int rank) { return allowed[rank == 0 ? 1 : 0]; });
}

// One whose agent spins on the processor that it has, or on another.
TEST(Crowded, is_a_rank_alone_whose_agent_spins_on_its_processor) {
  const std::vector<std::size_t> allowed = allowed_processors();
  for (std::size_t number = 0; number < std::min<std::size_t>(allowed.size(), 2); ++number) {
    Job job;
    job.ranks = 1;
    job.starts = false;
    job.settings = {{"FARSUM_AGENT", "dedicated"}, {"FARSUM_AGENT_CPUS", std::to_string(allowed[number])}};
    run_ranks(job, [&](int) {
      ASSERT_TRUE(bind_to(allowed[0]));
      ASSERT_FINE(farsum_init(nullptr));
      EXPECT_EQ(farsum_is_crowded(), number == 0 ? 1 : 0);
      EXPECT_FINE(farsum_finalize());
    });
  }
}

TEST(Crowded, is_no_rank_alone) {
  run_ranks(1, [](int) { EXPECT_EQ(farsum_is_crowded(), 0); });
}

}  // namespace
}  // namespace farsum::test
