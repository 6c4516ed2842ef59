// What `fock` promises: NWChem's energies whatever the ranks, paths, counters and blocks; the traffic of six blocks a
// quartet; and a sentence for input it cannot use.
// In make test-all: Hartree-Fock takes seconds; make demo shows it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fock_program.hpp"

namespace {

using fock_test::data_file;
using fock_test::How;
using fock_test::Outcome;
using fock_test::run_fock;
using fock_test::scratch_file;

// NWChem 7.0.2, recorded in apps/fock/data/reference.json by tools/nwchem_reference.
constexpr double water_hartree = -76.010503820921;
constexpr double benzene_hartree = -230.702060689217;
constexpr double allowed_hartree = 1e-8;

std::string write_scratch(const std::string& name, const std::string& text) {
  std::string path = scratch_file(name);
  std::ofstream(path) << text;
  return path;
}

double energy_of(const Outcome& run) {
  EXPECT_EQ(run.exit_status, 0) << run.text;
  return run.record.is_object() ? run.record.value("energy_hartree", 0.0) : 0.0;
}

class FockOnPath : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(FockOnPath, finds_nwchems_energy_of_water) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const auto& [path, ranks] = GetParam();
  const Outcome run = run_fock({data_file("water.xyz"), "--compare"}, {.ranks = ranks, .path = path});
  EXPECT_NEAR(energy_of(run), water_hartree, allowed_hartree);
  EXPECT_EQ(run.record.value("ranks", 0), ranks);
}

INSTANTIATE_TEST_SUITE_P(EveryPath, FockOnPath,
                         testing::Combine(testing::Values("auto", "direct", "attach", "caller", "owner", "aggregated"),
                                          testing::Values(1, 2, 3, 4)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_on_" + std::to_string(std::get<1>(instance.param)) +
                                  "_ranks";
                         });

TEST(Fock, finds_nwchems_energy_of_benzene_on_two_ranks) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const Outcome run = run_fock({data_file("benzene.xyz"), "--compare"}, {.ranks = 2});
  EXPECT_NEAR(energy_of(run), benzene_hartree, allowed_hartree);
}

// Minutes of computing: run when the engine or the builder changed.
TEST(Fock, finds_nwchems_energy_of_benzene_on_every_path_and_number_of_ranks) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  if (std::getenv("FARSUM_LONG_TESTS") == nullptr) GTEST_SKIP() << "set FARSUM_LONG_TESTS=1 to run it";
  for (const char* path : {"direct", "attach", "caller", "owner", "aggregated"}) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      SCOPED_TRACE(std::string(path) + " on " + std::to_string(ranks) + " ranks");
      const Outcome run = run_fock({data_file("benzene.xyz"), "--compare"}, {.ranks = ranks, .path = path});
      EXPECT_NEAR(energy_of(run), benzene_hartree, allowed_hartree);
    }
  }
}

// An independent count: the distinct unordered pairs among the six of every quartet (ij|kl) with i>=j, k>=l, ij>=kl.
int distinct_blocks_of_all_quartets(int blocks) {
  int count = 0;
  for (int i = 0; i < blocks; ++i)
    for (int j = 0; j <= i; ++j)
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= (k == i ? j : k); ++l) {
          std::set<std::pair<int, int>> distinct;
          for (auto [a, b] : {std::pair{i, j}, {k, l}, {i, k}, {i, l}, {j, k}, {j, l}})
            distinct.insert(std::minmax(a, b));
          count += static_cast<int>(distinct.size());
        }
  return count;
}

TEST(Fock, gets_and_accumulates_six_blocks_a_quartet_and_fewer_only_where_indices_coincide) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const int ranks = 2, blocks = 3, quartets = 21;
  const Outcome run = run_fock({data_file("water.xyz"), "--screen", "0"}, {.ranks = ranks});
  ASSERT_EQ(run.exit_status, 0) << run.text;
  const int builds = static_cast<int>(run.record.at("iterations").size());
  const auto& total = run.record.at("total");
  EXPECT_EQ(total.at("gets"), builds * distinct_blocks_of_all_quartets(blocks));
  EXPECT_EQ(total.at("accumulates"), total.at("gets"));
  EXPECT_EQ(total.at("quartets_done"), builds * quartets);
  EXPECT_EQ(total.at("tickets"), builds * (quartets + ranks)) << "each rank draws one ticket past the end";
}

TEST(Fock, finds_the_same_energy_however_the_work_is_cut_and_dealt_out) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const std::vector<std::vector<std::string>> ways = {
      {"--task", "pair"},      {"--block", "1"},      {"--block", "7", "--task", "pair"},
      {"--block", "100"},      {"--full-builds"},     {"--guess", "core"},
      {"--counter", "leased"}, {"--counter", "tree"}, {"--counter", "per-rank"},
      {"--screen", "0"},       {"--diis", "2"}};
  for (std::vector<std::string> way : ways) {
    SCOPED_TRACE(way[0] + " " + (way.size() > 1 ? way[1] : ""));
    way.push_back(data_file("water.xyz"));
    EXPECT_NEAR(energy_of(run_fock(way, {.ranks = 2})), water_hartree, allowed_hartree);
  }
}

TEST(Fock, reads_angstrom_unless_told_otherwise) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const std::string angstrom = write_scratch("a.xyz", "2\nhydrogen\nH 0 0 0\nH 0 0 0.529177210903\n");
  const std::string bohr = write_scratch("b.xyz", "2\nhydrogen units=bohr\nH 0 0 0\nH 0 0 1\n");
  const double expected = energy_of(run_fock({bohr}));
  EXPECT_LT(expected, -1.0);
  EXPECT_NEAR(energy_of(run_fock({angstrom})), expected, 1e-11);
  EXPECT_NEAR(energy_of(run_fock({angstrom, "--angstrom"})), expected, 1e-11);
  EXPECT_GT(std::abs(energy_of(run_fock({angstrom, "--bohr"})) - expected), 1e-3);
}

TEST(Fock, reports_every_iteration_and_the_work_of_every_rank) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const Outcome run = run_fock({data_file("water.xyz")}, {.ranks = 3});
  ASSERT_EQ(run.exit_status, 0) << run.text;
  const auto& ranks = run.record.at("per_rank");
  ASSERT_EQ(ranks.size(), 3u);
  std::uint64_t gets = 0;
  for (const auto& rank : ranks) {
    gets += rank.at("gets").get<std::uint64_t>();
    for (const char* time : {"get_s", "accumulate_s", "counter_s", "compute_s", "wait_s"})
      EXPECT_GE(rank.at(time), 0.0);
  }
  EXPECT_EQ(run.record.at("total").at("gets"), gets);
  EXPECT_NEAR(run.record.at("iterations").back().at("energy_hartree"), water_hartree, allowed_hartree);
}

TEST(Fock, fails_when_it_disagrees_with_the_recorded_energy) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  std::ifstream file(data_file("reference.json"));
  nlohmann::json document = nlohmann::json::parse(file);
  for (auto& record : document.at("records")) record["energy_hartree"] = record["energy_hartree"].get<double>() + 3e-8;
  const std::string wrong = write_scratch("reference.json", document.dump());
  const Outcome run = run_fock({data_file("water.xyz"), "--compare", "--reference", wrong});
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_NE(run.text.find("NOT within"), std::string::npos) << run.text;
}

TEST(Fock, fails_when_it_has_not_converged) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const Outcome run = run_fock({data_file("water.xyz"), "--iterations", "3"});
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_NE(run.text.find("NOT CONVERGED"), std::string::npos) << run.text;
}

void expect_one_sentence(const std::vector<std::string>& arguments, const std::string& part, const How& how = {}) {
  SCOPED_TRACE(part);
  const Outcome run = run_fock(arguments, how);
  EXPECT_EQ(run.exit_status, 2) << run.text;
  const std::size_t first = run.text.find("fock: ");
  ASSERT_NE(first, std::string::npos) << run.text;
  EXPECT_EQ(run.text.find("fock: ", first + 1), std::string::npos) << "said more than once:\n" << run.text;
  EXPECT_NE(run.text.find(part), std::string::npos) << run.text;
}

TEST(Fock, says_in_one_sentence_why_input_is_refused) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const std::string water = data_file("water.xyz");
  expect_one_sentence({write_scratch("x.xyz", "1\n\nXx 0 0 0\n")}, "line 3: unknown element 'Xx'");
  expect_one_sentence({write_scratch("x.xyz", "2\n\nH 0 0 0\n")}, "promises 2 atoms, the file has 1");
  expect_one_sentence({write_scratch("x.xyz", "1\n\nH 0 zero 0\n")}, "line 3: expected 'symbol x y z'");
  expect_one_sentence({write_scratch("x.xyz", "water\n")}, "line 1 must be the number of atoms");
  expect_one_sentence({write_scratch("x.xyz", "2\n\nH 0 0 0\nH 0 0 0.01\n")}, "bohr apart");
  expect_one_sentence({write_scratch("x.xyz", "1\n\nHe 0 0 0\n"), "--basis-file", write_scratch("b", "He S\n 1.0\n")},
                      "line 2: expected an exponent and its coefficients");
  expect_one_sentence({write_scratch("x.xyz", "1\n\nXe 0 0 0\n"), "--basis", "6-31G"}, "no functions for Xe");
  expect_one_sentence({"/nowhere/water.xyz"}, "cannot read molecule file");
  expect_one_sentence({water, "--charge", "1"}, "an even number of electrons");
  expect_one_sentence({water, "--basis", "7-32G"}, "unknown basis set '7-32G'");
  expect_one_sentence({water, "--basis", "sto-3g", "--compare"}, "has no record of water");
}

TEST(Fock, refuses_input_once_however_many_ranks_there_are) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  expect_one_sentence({data_file("water.xyz"), "--charge", "1"}, "an even number of electrons", {.ranks = 3});
}

TEST(Fock, shows_an_example_in_its_help) {
  SKIP_UNLESS_FOCK_IS_BUILT();
  const Outcome run = run_fock({"--help"});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_NE(run.text.find("farsum run -n 2 fock"), std::string::npos) << run.text;
}

}  // namespace
