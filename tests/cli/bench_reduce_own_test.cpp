// What `farsum bench reduce --model` tells of this machine, from files that are written here: nothing is measured.
// In make test-all: `make test` builds no benchmarks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cost/reduction_model.hpp"
#include "launched_job.hpp"
#include "measured_reductions.hpp"
#include "runtime/reduction_models.hpp"
#include "runtime/tree_times.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli::test {
namespace {

using nlohmann::json;
using ops::ElementType;
using ops::Operator;
using testing::HasSubstr;
using testing::Not;

// A folder of its own for measured parameters, named in the environment.
class BenchReduceHere : public testing::Test {
 protected:
  BenchReduceHere() { setenv("FARSUM_MODEL", folder_.c_str(), 1); }
  ~BenchReduceHere() override { unsetenv("FARSUM_MODEL"); }

  // Of a machine that is as the paper's cards, but for three times which together move no line. What combines nothing
  // is measured without elements.
  void measure_reductions() const {
    SerialReductions measured = farsum::test::measured_reductions(cost::paper_model());
    std::erase_if(measured.curves, [](const cost::SerialCurve& curve) { return curve.vector.op == Operator::no_op; });
    measured.curves.push_back(
        farsum::test::measured_curve(cost::paper_model(), {Operator::no_op, ElementType::int32, 0}));
    for (cost::SerialCurve& curve : measured.curves) {
      const cost::ReducedVector& vector = curve.vector;
      if (vector.op != Operator::sum || vector.type != ElementType::float64 || vector.elements != 1) continue;
      curve.times[3].us += 1;
      curve.times[4].us -= 2;
      curve.times[5].us += 1;
    }
    ASSERT_TRUE(write_serial_reductions(folder_, measured, "in May").is_ok());
  }

  // By which degree 2 is faster than 4, which the model calls best.
  void measure_trees() const {
    MeasuredTrees trees;
    trees.nodes = 31;
    trees.processors = 31;
    trees.curves = {{.vector = {Operator::sum, ElementType::float64, 1}, .times = {{2, 30}, {4, 36}, {8, 60}}}};
    ASSERT_TRUE(write_measured_trees(folder_, trees, "in June").is_ok());
  }

  // The lines of this machine, by case.
  static std::map<std::string, json> lines() {
    const Ended ended = run_farsum({"bench", "--json", "reduce", "--model"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::map<std::string, json> by_case;
    std::istringstream all(ended.out);
    for (std::string line; std::getline(all, line);) {
      const json row = json::parse(line);
      if (row.at("figure").get<std::string>().find("this machine") == std::string::npos) continue;
      EXPECT_TRUE(by_case.emplace(row.at("case"), row).second) << line;
    }
    return by_case;
  }

  const TemporaryFolder own_;
  const std::string folder_ = own_.path();
};

TEST_F(BenchReduceHere, sets_measured_serial_reductions_beside_the_line_that_is_fitted_to_them) {
  measure_reductions();
  const auto found = lines();
  const json& point = found.at("figure 2, this machine: float64 sum, 1 element, 6 nodes");
  EXPECT_DOUBLE_EQ(point.at("ours"), 20.9);
  EXPECT_DOUBLE_EQ(point.at("measured"), 18.9);
  EXPECT_EQ(point.at("ranks"), 6);
  EXPECT_EQ(point.at("processors"), 13);
  EXPECT_DOUBLE_EQ(found.at("figure 2, this machine: no_op, 13 nodes").at("measured"), 16.34);
  EXPECT_FALSE(found.contains("figure 2, this machine: float64 sum, 4 elements, 6 nodes")) << "the paper has none";
}

TEST_F(BenchReduceHere, has_tables_of_what_is_fitted) {
  measure_reductions();
  const auto found = lines();
  const auto ours = [&](const char* name) {
    return found.at(std::string("table 2, this machine: ") + name).at("ours").get<double>();
  };
  EXPECT_DOUBLE_EQ(ours("L"), 2.1);
  EXPECT_DOUBLE_EQ(ours("r"), 0.42);
  EXPECT_DOUBLE_EQ(ours("C, float64 sum"), 9.2);
  EXPECT_DOUBLE_EQ(ours("c, float64 sum, 8 elements"), 11.56);
  const Ended table = run_farsum({"bench", "reduce", "--model"});
  for (const char* part : {"This machine, measured in May: ", "Table 2 of this machine", "Figure 2 of this machine",
                           "float64 sum, 1 element, measured", "farsum info --model --measure --trees does it"})
    EXPECT_THAT(table.out, HasSubstr(part));
}

TEST_F(BenchReduceHere, sets_measured_trees_beside_what_is_predicted_of_them) {
  measure_reductions();
  measure_trees();
  const auto found = lines();
  const json& point = found.at("figure 10, this machine: float64 sum, 1 element, degree 4");
  EXPECT_DOUBLE_EQ(point.at("ours"), 28.94);
  EXPECT_EQ(point.at("measured"), 36);
  EXPECT_EQ(point.at("nodes"), 31);
  const json& best = found.at("figure 10, this machine: float64 sum, 1 element, best degree");
  EXPECT_EQ(best.at("ours"), 4);
  EXPECT_EQ(best.at("measured"), 2);
  EXPECT_DOUBLE_EQ(best.at("regret"), 1.2);
  const Ended table = run_farsum({"bench", "reduce", "--model"});
  EXPECT_THAT(table.out, HasSubstr("Figure 10 of this machine, measured in June: 31 nodes on 31 processors"));
  EXPECT_THAT(table.out, HasSubstr("2 is best, 4 is predicted to be, and takes 1.20 times as long"));
  EXPECT_THAT(table.out, Not(HasSubstr("does it")));
}

TEST_F(BenchReduceHere, says_which_command_measures_what_is_not_measured) {
  for (const auto& more : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> words{"bench", "reduce", "--model"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run_farsum(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    const std::string all = ended.out + ended.err;
    EXPECT_THAT(all, HasSubstr("no parameters are measured: farsum info --model --measure --reductions does it"));
    EXPECT_THAT(all, HasSubstr("no trees are measured: farsum info --model --measure --trees does it"));
  }
  EXPECT_TRUE(lines().empty());
  measure_trees();
  EXPECT_TRUE(lines().empty()) << "nothing predicts them";
  std::ofstream(reduction_file(folder_)) << "{";
  EXPECT_THAT(run_farsum({"bench", "reduce", "--model"}).out, HasSubstr(reduction_file(folder_) + " is not used"));
}

TEST_F(BenchReduceHere, keeps_its_lines_beside_the_figure_too) {
  measure_reductions();
  measure_trees();
  const Ended drawn = run_farsum({"bench", "reduce", "--model", "--plot", own_.path() / "figure.svg"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  std::stringstream kept;
  kept << std::ifstream(own_.path() / "figure.jsonl").rdbuf();
  EXPECT_THAT(kept.str(), HasSubstr("figure 2, this machine"));
  EXPECT_THAT(kept.str(), HasSubstr("figure 10, this machine"));
  if (!std::filesystem::exists(own_.path() / "figure.svg")) GTEST_SKIP() << drawn.err;
  std::stringstream figure;
  figure << std::ifstream(own_.path() / "figure.svg").rdbuf();
  EXPECT_THAT(figure.str(), HasSubstr("figure 10, this machine: 31 nodes"));
}

}  // namespace
}  // namespace farsum::cli::test
