// The lab programs with Farsum in front, in short, under Debian's two MPI libraries: each checks its own answers. And
// the tables of docs/results/lab.md.
// In make test-all: `make test` builds no labs.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "shell.hpp"

namespace {

using farsum::test::Ended;
using farsum::test::shell;

constexpr int missing_status = 77;  // as tools/lab_evidence says it

class Lab : public testing::TestWithParam<const char*> {};

// In short, with Farsum.
void run_programs(const std::string& mpi, const std::string& name, const std::string& options) {
  const std::filesystem::path build = std::filesystem::path(FARSUM_BIN_DIR).parent_path();
  const Ended run = shell(FARSUM_SOURCE_DIR "/tools/lab_evidence --quick --with --mpi " + mpi + " --build " +
                          build.string() + " --output " + (build / "lab" / (name + mpi)).string() + options);
  if (run.status == missing_status) GTEST_SKIP() << run.output;
  EXPECT_EQ(run.status, 0) << run.output;
}

TEST_P(Lab, programs_come_to_their_right_answers_with_farsum) { run_programs(GetParam(), "test-", ""); }

TEST_P(Lab, programs_come_to_their_right_answers_over_two_hosts) {
  // RandomAccess takes half of the time, and is no other program with another library.
  const std::string programs =
      GetParam() == std::string("openmpi") ? "counter,randomaccess,automaton" : "counter,automaton";
  run_programs(GetParam(), "test-hosts-", " --hosts 2 --limit 30 --program " + programs);
}

INSTANTIATE_TEST_SUITE_P(Debian, Lab, testing::Values("openmpi", "mpich"),
                         [](const auto& chosen) { return chosen.param; });

TEST(LabEvidence, writes_tables_as_its_own_tests_say) {
  const Ended run = shell(FARSUM_SOURCE_DIR "/tests/lab/lab_tables_test.py");
  EXPECT_EQ(run.status, 0) << run.output;
}

}  // namespace
