// Ranks that are killed at random instants, during every kind of operation: the others report it, and nothing is left.
// FARSUM_FAULT_SEEDS sets how many seeds each workload gets, FARSUM_FAULT_SEED the first of them.
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "job.hpp"
#include "workloads.hpp"

namespace farsum::faults {
namespace {

class KilledRank : public testing::TestWithParam<std::string> {};

// Burns a stretch of time without giving up the processor.
void pass_ns(std::uint64_t duration_ns) {
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < duration_ns) {
  }
}

std::string kill_once(const Workload& workload, std::uint64_t seed) {
  Random random(seed * 1000003 + std::hash<std::string>{}(workload.name) % 1000);
  JobOptions options;
  options.ranks = 3;
  options.by_allgather = !workload.joins_itself && random.below(2) == 1;
  options.environment = workload.environment;
  options.environment.push_back(soon_looked);
  const int victim = static_cast<int>(random.below(3));
  const std::uint64_t round = 2 + random.below(30);
  const std::uint64_t delay_ns = random.below(random.below(2) == 0 ? 20'000 : 2'000'000);
  const bool reap = random.below(2) == 1;
  Job job(options);
  job.start([&](const Rank& self) { return run_workload(self, workload, ~std::uint64_t{0}); });
  if (!job.wait_for([&] { return job.words(victim).rounds.load() >= round; })) {
    std::string texts;
    for (int rank = 0; rank < job.size(); ++rank) {
      texts += fmt::format("\n  rank {} after {} rounds: {}", rank, job.words(rank).rounds.load(),
                           job.words(rank).text.data());
    }
    return "\n  the ranks did not get going" + texts;
  }
  pass_ns(delay_ns);
  while (workload.joins_itself && !job.stop_inside_context(victim)) pass_ns(10'000);
  job.kill_rank(victim, reap);
  std::string wrong = judge_death(job, victim);
  if (!wrong.empty()) {
    wrong = fmt::format("rank {} killed {} ns after round {} ({}, {}):{}", victim, delay_ns, round,
                        options.by_allgather ? "by allgather" : "by environment", reap ? "reaped" : "a zombie", wrong);
  }
  return wrong;
}

TEST_P(KilledRank, is_reported_by_all_others_and_leaves_nothing) {
  const std::uint64_t first = environment_number("FARSUM_FAULT_SEED", 1);
  const std::uint64_t seeds = environment_number("FARSUM_FAULT_SEEDS", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string wrong = kill_once(*find_workload(GetParam()), seed);
    ASSERT_EQ(wrong, "") << "seed " << seed << "; replay: FARSUM_FAULT_SEED=" << seed
                         << " bin/tests/test_faults --gtest_filter='*KilledRank*/" << GetParam() << "'";
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(During, KilledRank, testing::ValuesIn(all_names()), [](const auto& one) { return one.param; });

// A survivor that carries on is told again and again: a barrier never takes one of the living for the dead.
TEST(Survivors, are_told_of_the_death_by_every_later_collective_call) {
  constexpr int victim = 2;
  Job job(JobOptions{});
  job.start([](const Rank& self) {
    if (!self.ok(self.init())) return 1;
    self.words().ready.store(1);
    while (self.rank == victim) pause();
    (void)self.ok(farsum_barrier(farsum_world()));
    std::uint64_t refused = 0;
    for (int i = 0; i < 6; ++i) refused += farsum_barrier(farsum_world()) == FARSUM_ERR_PEER_FAILED ? 1 : 0;
    refused += farsum_finalize() == FARSUM_ERR_PEER_FAILED ? 1 : 0;
    refused += self.init() == FARSUM_ERR_PEER_FAILED ? 1 : 0;
    self.words().value.store(refused);
    return 0;
  });
  ASSERT_TRUE(job.wait_for([&] { return job.words(0).ready && job.words(1).ready && job.words(2).ready; }));
  job.kill_rank(victim, true);
  EXPECT_EQ(judge_death(job, victim), "");
  EXPECT_EQ(job.words(0).value, 8U);
  EXPECT_EQ(job.words(1).value, 8U);
}

// Every workload comes to its end when nobody is disturbed: else the tests above would show nothing.
class UndisturbedJob : public testing::TestWithParam<std::string> {};

TEST_P(UndisturbedJob, comes_to_its_end_and_leaves_nothing) {
  const Workload& workload = *find_workload(GetParam());
  JobOptions options;
  options.environment = workload.environment;
  Job job(options);
  job.start([&](const Rank& self) { return run_workload(self, workload, 20); });
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0);
    EXPECT_EQ(job.words(rank).value.load(), 1U) << job.words(rank).text.data();
  }
  EXPECT_EQ(job.leftovers(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, UndisturbedJob, testing::ValuesIn(all_names()), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace farsum::faults
