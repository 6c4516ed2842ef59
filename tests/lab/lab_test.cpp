// The lab programs with Farsum in front, in short, under Debian's two MPI libraries: each checks its own answers. And
// the tables of docs/LAB.md.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace {

constexpr int missing_status = 77;  // as tools/lab_evidence says it

struct Ended {
  int status;
  std::string output;
};

Ended shell(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1 < /dev/null").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

class Lab : public testing::TestWithParam<const char*> {};

TEST_P(Lab, programs_come_to_their_right_answers_with_farsum) {
  const std::filesystem::path build = std::filesystem::path(FARSUM_BIN_DIR).parent_path();
  const std::string mpi = GetParam();
  const Ended run = shell(FARSUM_SOURCE_DIR "/tools/lab_evidence --quick --with --mpi " + mpi + " --build " +
                          build.string() + " --output " + (build / "lab" / ("test-" + mpi)).string());
  if (run.status == missing_status) GTEST_SKIP() << run.output;
  EXPECT_EQ(run.status, 0) << run.output;
}

INSTANTIATE_TEST_SUITE_P(Debian, Lab, testing::Values("openmpi", "mpich"),
                         [](const auto& chosen) { return chosen.param; });

TEST(LabEvidence, writes_tables_as_its_own_tests_say) {
  const Ended run = shell(FARSUM_SOURCE_DIR "/tests/lab/lab_tables_test.py");
  EXPECT_EQ(run.status, 0) << run.output;
}

}  // namespace
