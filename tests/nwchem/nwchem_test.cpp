// NWChem as Debian ships it, with Farsum in front: the short form of docs/NWCHEM.md. Where NWChem is not installed
// these are reported skips (tools/setup --with-nwchem installs it).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace {

constexpr int missing_status = 77;  // as tools/nwchem_evidence says it

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

class Nwchem : public testing::TestWithParam<const char*> {};

TEST_P(Nwchem, gives_the_energy_of_water_on_two_ranks_with_farsum_that_it_gives_on_one_without) {
  const std::string source = FARSUM_SOURCE_DIR;
  const std::filesystem::path build = std::filesystem::path(FARSUM_BIN_DIR).parent_path();
  const std::string mpi = GetParam();
  const Ended run =
      shell(source + "/tools/nwchem_evidence --energy-only --case water --ranks 2 --with --limit 60 --mpi " + mpi +
            " --build " + build.string() + " --output " + (build / "nwchem" / ("test-" + mpi)).string());
  if (run.status == missing_status) GTEST_SKIP() << run.output;
  EXPECT_EQ(run.status, 0) << run.output;
}

INSTANTIATE_TEST_SUITE_P(Debian, Nwchem, testing::Values("openmpi", "mpich"),
                         [](const auto& chosen) { return chosen.param; });

TEST(NwchemOutput, is_read_as_its_own_tests_say) {
  const Ended run = shell(std::string(FARSUM_SOURCE_DIR) + "/tests/nwchem/nwchem_output_test.py");
  EXPECT_EQ(run.status, 0) << run.output;
}

TEST(NwchemTables, are_written_as_their_own_tests_say) {
  const Ended run = shell(std::string(FARSUM_SOURCE_DIR) + "/tests/nwchem/nwchem_tables_test.py");
  EXPECT_EQ(run.status, 0) << run.output;
}

}  // namespace
