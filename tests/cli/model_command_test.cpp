// `farsum info --model` and `farsum bench model` as a user and a script see them. Times are nobody's concern here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "launched_job.hpp"
#include "measured_reductions.hpp"
#include "runtime/link_models.hpp"
#include "runtime/reduction_models.hpp"
#include "runtime/tree_times.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A folder of its own for measured parameters, named in the environment.
class ModelCommand : public testing::Test {
 protected:
  ModelCommand() { setenv("FARSUM_MODEL", folder_.c_str(), 1); }
  ~ModelCommand() override { unsetenv("FARSUM_MODEL"); }

  std::string node_file() const { return model_file(folder_, cost::LinkClass::node); }
  static json report() { return json::parse(run_farsum({"info", "--model", "--json"}).out); }

  const TemporaryFolder own_;
  const std::string folder_ = own_.path();
};

TEST_F(ModelCommand, says_where_each_parameter_is_from_and_what_is_chosen_by_them) {
  const json found = report();
  EXPECT_EQ(found.at("model").at("folder"), folder_);
  std::set<std::string> classes;
  for (const json& row : found.at("parameters")) {
    classes.insert(row.at("class"));
    EXPECT_EQ(row.at("from"), "built in");
    EXPECT_TRUE(row.at("value").is_number());
    EXPECT_NE(row.at("meaning"), "");
  }
  EXPECT_THAT(classes, testing::ElementsAre("node", "tcp"));
  for (const json& row : found.at("choices")) {
    EXPECT_TRUE(row.at("all_us").contains(row.at("path"))) << row;
    EXPECT_EQ(row.at("all_us").at(row.at("path").get<std::string>()), row.at("predicted_us")) << row;
    const bool is_mapped = row.at("place") == "node" && row.at("memory") == "allocated";
    EXPECT_EQ(row.at("path") == "direct", is_mapped) << row;
  }
  EXPECT_THAT(run_farsum({"info", "--model"}).out, HasSubstr("fetch_and_op"));
}

TEST_F(ModelCommand, measures_keeps_and_uses_what_it_measured) {
  const Ended ended = run_farsum({"info", "--model", "--measure", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(json::parse(ended.out).at("model").at("node").get<std::string>(), HasSubstr(node_file()));
  const json found = report();
  for (const json& row : found.at("parameters")) {
    EXPECT_EQ(row.at("from"), row.at("class") == "node" ? "measured" : "built in");
    EXPECT_GE(row.at("value").get<double>(), 0);
  }
}

TEST_F(ModelCommand, measures_as_the_ranks_of_a_job_of_which_one_reports) {
  const Ended ended =
      run_farsum({"run", "-n", "3", FARSUM_BIN_DIR "/farsum", "info", "--model", "--measure", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(json::accept(ended.out));
  EXPECT_TRUE(std::filesystem::exists(node_file()));
}

TEST_F(ModelCommand, has_tables_of_reductions_that_are_the_papers_until_they_are_measured) {
  const json found = report();
  EXPECT_EQ(found.at("reductions").at("from"), "built in: the network cards of paper 5");
  EXPECT_FALSE(found.contains("serial_reductions"));
  EXPECT_EQ(found.at("reduction_parameters").at(0).at("us"), 2.1);
  for (const json& row : found.at("reduction_times_us")) {
    if (row.at("op") != "sum" || row.at("type") != "double") continue;
    EXPECT_EQ(row.at("c(1)"), 1.5);
    EXPECT_EQ(row.at("C(op)"), 9.2);
  }
}

TEST_F(ModelCommand, has_a_hash_of_how_nodes_reduce_which_changes_with_the_degree_that_is_asked_for) {
  const json usual = report().at("reduction_schedules");
  setenv("FARSUM_REDUCE_DEGREE", "2", 1);
  const json binomial = report().at("reduction_schedules");
  unsetenv("FARSUM_REDUCE_DEGREE");
  ASSERT_EQ(usual.size(), binomial.size());
  for (std::size_t row = 0; row < usual.size(); ++row)
    EXPECT_EQ(usual[row].at("hash") == binomial[row].at("hash"), usual[row].at("nodes") > 12) << usual[row];
}

// Of 8 nodes, which else tell each other at once.
TEST_F(ModelCommand, says_which_tree_a_job_takes_and_who_chooses_it) {
  const auto of_8_nodes = [] {
    const json rows = report().at("reduction_schedules");
    return *std::find_if(rows.begin(), rows.end(), [](const json& row) { return row.at("nodes") == 8; });
  };
  EXPECT_EQ(of_8_nodes().at("chosen_by"), "the number of nodes");
  ASSERT_TRUE(
      write_serial_reductions(folder_, farsum::test::measured_reductions(cost::paper_model()), "today").is_ok());
  EXPECT_EQ(of_8_nodes().at("reduce"), "by a tree of degree 4");
  EXPECT_EQ(of_8_nodes().at("rest_of_long_sums"), "by a tree of degree 2");
  ASSERT_TRUE(write_serial_reductions(folder_, farsum::test::dear_messages(), "today").is_ok());
  EXPECT_EQ(of_8_nodes().at("chosen_by"), "the model");
  EXPECT_EQ(of_8_nodes().at("reduce"), "by a tree of degree 2");
  setenv("FARSUM_REDUCE_MODEL", "off", 1);
  EXPECT_EQ(of_8_nodes().at("reduce"), "each with all at once");
  unsetenv("FARSUM_REDUCE_MODEL");
  setenv("FARSUM_REDUCE_DEGREE", "3", 1);
  EXPECT_EQ(of_8_nodes().at("reduce"), "by a tree of degree 3");
  EXPECT_EQ(of_8_nodes().at("chosen_by"), "FARSUM_REDUCE_DEGREE");
  unsetenv("FARSUM_REDUCE_DEGREE");
}

// In make test-all: the model is measured.
TEST_F(ModelCommand, measures_serial_reductions_over_nodes_of_this_machine_and_shows_what_the_fit_misses) {
  const Ended ended = run_farsum({"info", "--model", "--measure", "--reductions", "--nodes", "3", "--json"});
  if (ended.exit_code != 0 && ended.err.find("UCX") != std::string::npos) GTEST_SKIP() << ended.err;
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json found = json::parse(ended.out);
  EXPECT_THAT(found.at("reductions").at("from").get<std::string>(), HasSubstr(reduction_file(folder_)));
  EXPECT_EQ(found.at("reduction_times_us").size(), 4u);
  EXPECT_EQ(found.at("serial_reductions").size(), 17u);
  for (const json& row : found.at("serial_reductions")) {
    EXPECT_EQ(row.at("measured_us").size(), 2u) << row;
    EXPECT_EQ(row.at("residual_us").size(), 2u) << row;
  }
  EXPECT_FALSE(std::filesystem::exists(node_file())) << "links were measured, too";
}

// In make test-all: the model is measured.
TEST_F(ModelCommand, sets_trees_beside_what_is_predicted_of_them_and_says_its_choice_before_they_are_timed) {
  const Ended ended = run_farsum({"info", "--model", "--measure", "--trees", "--nodes", "3", "--json"});
  if (ended.exit_code != 0 && ended.err.find("UCX") != std::string::npos) GTEST_SKIP() << ended.err;
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("3 nodes, sum double of 8 elements: degree"));
  const json found = json::parse(ended.out);
  EXPECT_EQ(found.at("trees").size(), 8u) << "of 1, 2, 4 and 8 elements by degrees 2 and 3";
  int chosen = 0;
  for (const json& row : found.at("trees")) {
    EXPECT_GT(row.at("measured_us").get<double>(), 0) << row;
    EXPECT_GE(row.at("of_best").get<double>(), 1) << row;
    chosen += row.at("choice") == "chosen" ? 1 : 0;
  }
  EXPECT_EQ(chosen, 4);
  EXPECT_EQ(found.at("regret").at("aim"), 1.15);
  EXPECT_FALSE(std::filesystem::exists(reduction_file(folder_))) << "times of trees became parameters";
  const MeasuredTrees kept = read_measured_trees(folder_);
  EXPECT_EQ(kept.complaint, "");
  EXPECT_EQ(kept.nodes, 3U);
  ASSERT_EQ(kept.curves.size(), 4U);
  EXPECT_EQ(kept.curves[3].vector.elements, 8U);
  ASSERT_EQ(kept.curves[3].times.size(), 2U);
  EXPECT_NEAR(kept.curves[3].times[1].us, found.at("trees").at(7).at("measured_us").get<double>(), 1e-3);
}

TEST_F(ModelCommand, names_a_damaged_file_of_reductions_and_goes_on_without_it) {
  std::ofstream(reduction_file(folder_)) << "{";
  const json found = report();
  EXPECT_THAT(found.at("reductions").at("complaint").get<std::string>(),
              HasSubstr(reduction_file(folder_) + " is not used"));
  EXPECT_EQ(found.at("reduction_parameters").at(0).at("us"), 2.1);
}

TEST_F(ModelCommand, names_a_damaged_file_and_goes_on_without_it) {
  std::ofstream(node_file()) << "{";
  const json found = report();
  EXPECT_THAT(found.at("model").at("node_complaint").get<std::string>(), HasSubstr(node_file() + " is not used"));
  EXPECT_THAT(found.at("model").at("node").get<std::string>(), HasSubstr("built in"));
}

TEST_F(ModelCommand, cannot_measure_alone_or_with_nowhere_to_keep_it) {
  const Ended alone = run_farsum({"run", FARSUM_BIN_DIR "/farsum", "info", "--model", "--measure"});
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_THAT(alone.err, HasSubstr("two ranks"));
  setenv("FARSUM_MODEL", "none", 1);
  const Ended nowhere = run_farsum({"info", "--model", "--measure"});
  EXPECT_NE(nowhere.exit_code, 0);
  EXPECT_THAT(nowhere.err, HasSubstr("FARSUM_MODEL is none"));
  EXPECT_EQ(run_farsum({"info", "--measure"}).exit_code, 2);
}

// The short form checks every answer; here: that what is chosen is told first, and taken.
// In make test-all: `make test` builds no benchmarks.
TEST_F(ModelCommand, bench_tells_its_choices_first_and_windows_take_them) {
  const Ended ended = run_farsum({"bench", "--json", "model", "--tiny", "--places", "node"});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  std::istringstream lines(ended.out);
  std::vector<json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
  ASSERT_GT(records.size(), 2u);
  EXPECT_TRUE(records.front().contains("choices"));
  EXPECT_EQ(records.front().at("sha256").get<std::string>().size(), 64u);
  EXPECT_TRUE(records.back().contains("geometric_mean"));
  const auto means = std::find_if(records.begin(), records.end(),
                                  [](const json& record) { return record.contains("geometric_mean"); });
  ASSERT_GT(means - records.begin(), 1);
  for (auto row = records.begin() + 1; row != means; ++row) {
    EXPECT_EQ(row->at("taken"), row->at("chosen")) << *row;
    EXPECT_GT(row->at("regret").get<double>(), 0);
    EXPECT_GE(row->at("forced_us").size(), 2u) << *row;
  }
  // The place's, which has the aim, and then by the number of origins.
  EXPECT_TRUE(means->at("met").is_boolean()) << *means;
  for (auto mean = means + 1; mean != records.end(); ++mean) EXPECT_GE(mean->at("origins").get<int>(), 1) << *mean;
}

}  // namespace
}  // namespace farsum::cli::test
