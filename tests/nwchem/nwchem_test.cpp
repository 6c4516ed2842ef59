// NWChem as Debian ships it, with Farsum in front: the short form of docs/results/nwchem.md. Where NWChem is not
// installed these are reported skips (tools/setup --with-nwchem installs it).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "shell.hpp"

namespace {

using farsum::test::Ended;
using farsum::test::shell;

constexpr int missing_status = 77;  // as tools/nwchem_evidence says it

class Nwchem : public testing::TestWithParam<const char*> {
 protected:
  // Its energy is held against that of one rank without Farsum; a run that differs makes the status 1.
  void expect_energy_of_water(const std::string& where) {
    const std::filesystem::path build = std::filesystem::path(FARSUM_BIN_DIR).parent_path();
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::string folder = "test-" + name;
    std::replace(folder.begin(), folder.end(), '/', '-');
    const Ended run = shell(
        std::string(FARSUM_SOURCE_DIR) + "/tools/nwchem_evidence --energy-only --case water --with --limit 60 --mpi " +
        GetParam() + " " + where + " --build " + build.string() + " --output " + (build / "nwchem" / folder).string());
    if (run.status == missing_status) GTEST_SKIP() << run.output;
    EXPECT_EQ(run.status, 0) << run.output;
  }
};

// Takes seconds (*/mpich*): NWChem runs twice.
// In make test-all (*/openmpi*): the other library.
TEST_P(Nwchem, gives_the_energy_of_water_on_two_ranks_with_farsum_that_it_gives_on_one_without) {
  expect_energy_of_water("--ranks 2");
}

// In make test-all: NWChem over two hosts.
TEST_P(Nwchem, gives_the_same_over_two_hosts) { expect_energy_of_water("--ranks 2 --hosts 2"); }

// In make test-all: NWChem over two hosts.
TEST_P(Nwchem, gives_the_same_over_two_hosts_of_two_ranks) { expect_energy_of_water("--ranks 4 --hosts 2"); }

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
