// `farsum bench reduce` as a user and a script see it: numbers that paper 5 states or that were done by hand.
// In make test-all: `make test` builds no benchmarks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "launched_job.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The lines by case.
std::map<std::string, json> reduce_lines() {
  const Ended ended = run_farsum({"bench", "--json", "reduce", "--model"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json> by_case;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    EXPECT_EQ(row.at("bench"), "reduce") << line;
    EXPECT_TRUE(row.at("ours").is_number() && row.at("unit").is_string()) << line;
    EXPECT_TRUE(by_case.emplace(row.at("case"), row).second) << line;
  }
  return by_case;
}

TEST(BenchReduce, tells_best_degrees_beside_the_papers_with_their_margins) {
  const auto lines = reduce_lines();
  struct Best {
    const char* of;
    int degree;
    int paper;
    double margin_us;
  };
  for (const Best& best :
       {Best{"1 element, formula", 4, 4, 0.36}, Best{"2 elements, formula", 2, 2, 2.54},
        Best{"4 elements, formula", 2, 2, 8.24}, Best{"8 elements, formula", 2, 2, 19.76},
        Best{"1 element, events, slot order", 2, 4, 1.74}, Best{"1 element, events, arrival order", 3, 4, 0},
        Best{"2 elements, events, arrival order", 2, 2, 2.54}}) {
    const json& line = lines.at("figure 10: float64 sum, " + std::string(best.of) + ", best degree");
    EXPECT_EQ(line.at("ours"), best.degree) << line;
    EXPECT_EQ(line.at("paper"), best.paper) << line;
    EXPECT_DOUBLE_EQ(line.at("margin_us"), best.margin_us) << line;
  }
}

TEST(BenchReduce, predicts_by_the_formula_and_by_events) {
  const auto lines = reduce_lines();
  const auto ours = [&](const std::string& name) { return lines.at(name).at("ours").get<double>(); };
  EXPECT_DOUBLE_EQ(ours("figure 2: float64 sum, 2 elements, 13 ranks"), 51.74);
  EXPECT_DOUBLE_EQ(ours("figure 2: no_op, 2 ranks"), 11.72);
  EXPECT_DOUBLE_EQ(ours("figure 10: float64 sum, 1 element, formula, degree 4"), 28.94);
  EXPECT_DOUBLE_EQ(ours("figure 10: float64 sum, 1 element, events, slot order, degree 4"), 28.94);
  EXPECT_DOUBLE_EQ(ours("figure 10: float64 sum, 1 element, events, arrival order, degree 4"), 27.02);
  EXPECT_DOUBLE_EQ(ours("figure 10: float64 sum, 8 elements, events, arrival order, degree 4"), 97.26);
  const json& scale = lines.at("section 6.3: float64 sum, 1 element, formula");
  EXPECT_DOUBLE_EQ(scale.at("ours"), 48.50);
  EXPECT_EQ(scale.at("paper"), 65);
  EXPECT_NEAR(ours("figure 14: c = 0.00"), 5.57, 0.005);
  EXPECT_EQ(lines.at("table 2: c, float64 sum, 8 elements").at("paper"), 11.56);
}

TEST(BenchReduce, prints_tables_and_what_the_model_misses) {
  const Ended ended = run_farsum({"bench", "reduce", "--model"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  for (const char* part : {"Table 1", "Table 2", "Figure 2", "Figure 10", "Figure 14", "4 (by 0.36 before 2)",
                           "3 (as 4)", "What the model misses"})
    EXPECT_THAT(ended.out, HasSubstr(part));
}

TEST(BenchReduce, measures_ranks_of_this_node_beside_a_library) {
  const Ended ended =
      run_farsum({"bench", "--json", "reduce", "--measure", "--rows", "allreduce/8,reduce-scatter/32768,b*r",
                  "--libraries", "mpich", "--ranks", "2,3", "--pairs", "1", "--seconds", "0.001"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::vector<std::string> cases;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    EXPECT_EQ(row.at("bench"), "reduce");
    EXPECT_GT(row.at("ours"), 0) << line;
    EXPECT_GT(row.at("limit"), 0) << line;
    EXPECT_EQ(row.at("met"), row.at("ratio").get<double>() <= row.at("aim").get<double>()) << line;
    const bool is_a_call = row.contains("bytes");
    EXPECT_TRUE(!is_a_call || row.at("peer") == "mpich") << line;
    if (row.at("peer") != "bare processes") cases.push_back(row.at("case"));
  }
  EXPECT_THAT(cases, testing::ElementsAre("allreduce/8, 2 ranks", "reduce-scatter/32768, 2 ranks", "barrier, 2 ranks",
                                          "allreduce/8, 3 ranks", "reduce-scatter/32768, 3 ranks", "barrier, 3 ranks",
                                          "64 B and more, 2 ranks, geometric mean"));
}

TEST(BenchReduce, times_calls_beside_computing_and_says_what_each_peer_does) {
  const Ended ended =
      run_farsum({"bench", "--json", "reduce", "--overlap", "--rows", "allreduce/8,allreduce/1048576", "--libraries",
                  "mpich", "--ranks", "3", "--pairs", "1", "--seconds", "0.001", "--dedicated"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json> by_case;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    EXPECT_TRUE(row.at("peers").at("mpich").is_number()) << line;
    EXPECT_TRUE(by_case.emplace(row.at("case"), row).second) << line;
  }
  EXPECT_EQ(by_case.size(), 16U);
  const json& cost = by_case.at("overlap of allreduce/8, 3 ranks: computing with it");
  EXPECT_EQ(cost.at("aim"), 1.005);
  EXPECT_GT(cost.at("limit"), 10) << "nothing was computed";
  EXPECT_GT(cost.at("ours"), 10);
  const json& over =
      by_case.at("overlap of allreduce/1048576, 3 ranks, dedicated agent: it has ended when the computing has");
  EXPECT_TRUE(over.at("ours") >= 0 && over.at("ours") <= 1) << over;
  EXPECT_TRUE(over.at("aim").is_null() && over.at("met").is_null()) << over;
  const json& hidden = by_case.at("overlap of allreduce/8, 3 ranks: hidden, as OSU says it");
  EXPECT_TRUE(hidden.at("imb").is_number() && hidden.at("pure_us") > 0) << hidden;
  const json& waited = by_case.at("allreduce/8, 3 ranks: waited for, the middle rank computes 10 ms");
  EXPECT_EQ(waited.at("peer"), "mpich");
  EXPECT_GT(waited.at("ours"), 0);
}

TEST(BenchReduce, tells_how_much_calls_differ_beside_busy_processes) {
  const Ended ended =
      run_farsum({"bench", "--json", "reduce", "--steady", "--rows", "allreduce/8,barrier", "--libraries", "mpich",
                  "--calls", "20", "--seconds", "2", "--hogs", "1", "--dedicated"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json> by_case;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    EXPECT_TRUE(row.at("ours").is_number() && row.at("peers").at("mpich").is_number()) << line;
    EXPECT_TRUE(by_case.emplace(row.at("case"), row).second) << line;
  }
  for (const char* call : {"allreduce/8", "barrier"}) {
    const json& row = by_case.at(std::string("steadiness of ") + call + ", 2 ranks, 1 hog: standard deviation");
    EXPECT_EQ(row.at("aim"), 0.2);
    EXPECT_EQ(row.at("distributions").size(), 3U) << row;
    EXPECT_TRUE(by_case.contains(std::string("steadiness of ") + call + ", 2 ranks, 1 hog, dedicated agent: mean"));
    for (const auto& [who, found] : row.at("distributions").items()) {
      double in_bins = 0;
      for (const json& bin : found.at("bins")) in_bins += bin.at(1).get<double>();
      EXPECT_EQ(found.at("calls"), in_bins) << who;
      EXPECT_TRUE(found.at("calls") > 0 && found.at("calls") <= 20) << who;
      EXPECT_LE(found.at("p50_us"), found.at("most_us")) << who;
    }
  }
  // Where this user may raise no priority it is said.
  EXPECT_TRUE(by_case.contains("steadiness of barrier, 2 ranks, 1 hog, raised priority: mean") !=
              (ended.err.find("no cells with raised priority") != std::string::npos))
      << ended.err;
}

TEST(BenchReduce, measures_ranks_on_test_hosts_and_a_middle_one_that_computes) {
  const auto cases_of = [](const std::vector<std::string>& options) {
    std::vector<std::string> words{"bench",  "--json",      "reduce",  "--hosts", "2",         "--libraries", "openmpi",
                                   "--rows", "allreduce/8", "--pairs", "1",       "--seconds", "0.001"};
    words.insert(words.end(), options.begin(), options.end());
    return run_farsum(words);
  };
  const Ended in_a_row = cases_of({"--measure"});
  if (in_a_row.exit_code == 77) GTEST_SKIP() << in_a_row.err;
  ASSERT_EQ(in_a_row.exit_code, 0) << in_a_row.err;
  const json row = json::parse(in_a_row.out.substr(0, in_a_row.out.find('\n')));
  EXPECT_EQ(row.at("case"), "allreduce/8, 2 ranks on 2 hosts");
  EXPECT_EQ(row.at("aim"), 1.15);
  EXPECT_EQ(row.at("peer"), "openmpi");
  EXPECT_TRUE(row.at("ours") > 0 && row.at("limit") > 0) << row;
  const Ended overlap = cases_of({"--overlap"});
  ASSERT_EQ(overlap.exit_code, 0) << overlap.err;
  EXPECT_THAT(overlap.out, HasSubstr("\"overlap of allreduce/8, 2 ranks on 2 hosts: computing with it\""));
  EXPECT_THAT(overlap.out,
              HasSubstr("\"allreduce/8, 4 ranks on 2 hosts: waited for, the middle rank computes 10 ms\""));
}

TEST(BenchReduce, names_what_can_be_measured) {
  const Ended library = run_farsum({"bench", "reduce", "--measure", "--libraries", "no-such-library"});
  EXPECT_EQ(library.exit_code, 2);
  EXPECT_THAT(library.err, HasSubstr("lab-reduce cannot run under no-such-library here; there are: "));
  const Ended row = run_farsum({"bench", "reduce", "--measure", "--rows", "no-such-row"});
  EXPECT_EQ(row.exit_code, 2);
  EXPECT_THAT(row.err, HasSubstr("no call is called so; there are: allreduce/8, "));
  const Ended ranks = run_farsum({"bench", "reduce", "--measure", "--hosts", "2", "--ranks", "2,3"});
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("3 ranks are not as many on each of 2 hosts"));
}

TEST(BenchReduce, simulates_a_cluster_and_says_what_was_fitted) {
  const Ended ended = run_farsum({"bench", "--json", "reduce", "--simulate", "--short", "--calls", "300"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json> by_case;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    EXPECT_TRUE(by_case.emplace(row.at("case"), row).second) << line;
  }
  const json& fitted = by_case.at("figure 11: card, barrier, 906 nodes, 906 ranks, 1 int32 sum");
  EXPECT_EQ(fitted.at("basis"), "fitted");
  EXPECT_EQ(fitted.at("ours"), 10.92);
  const json& predicted = by_case.at("figure 11: card, average, 906 nodes, 906 ranks, 1 float64 sum, noise of 1000 us");
  EXPECT_EQ(predicted.at("basis"), "predicted");
  EXPECT_EQ(predicted.at("paper"), 65);
  EXPECT_NEAR(predicted.at("ratio").get<double>(), 57.5 / 65, 1e-5);
  const Ended table = run_farsum({"bench", "reduce", "--simulate", "--short", "--calls", "300"});
  EXPECT_THAT(table.out, HasSubstr("What the simulation misses"));
}

TEST(BenchReduce, tells_how_large_a_cluster_it_simulates) {
  const Ended ended = run_farsum({"bench", "--json", "reduce", "--scale", "--protocol-ranks", "13"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json letters = json::parse(ended.out.substr(0, ended.out.find('\n')));
  EXPECT_EQ(letters.at("letters"), 200 * 16'383);
  EXPECT_GT(letters.at("ours"), 0);
}

TEST(BenchReduce, runs_the_walks_of_ranks_themselves_in_virtual_time) {
  for (const char* ranks : {"2", "12", "13", "200"}) {
    const Ended ended = run_farsum({"bench", "--json", "reduce", "--scale", "--protocol-ranks", ranks});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::istringstream lines(ended.out);
    std::string line;
    bool is_told = false;
    while (std::getline(lines, line)) {
      const json told = json::parse(line);
      if (!told.contains("right")) continue;
      is_told = true;
      EXPECT_EQ(told.at("right"), true) << line;
    }
    EXPECT_TRUE(is_told) << ranks;
  }
}

TEST(BenchReduce, keeps_the_lines_beside_the_figure_and_fails_where_it_cannot) {
  const TemporaryFolder folder;
  const Ended drawn = run_farsum({"bench", "reduce", "--model", "--plot", folder.path() / "new/figure.svg"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "new/figure.jsonl"));
  EXPECT_EQ(run_farsum({"bench", "reduce", "--model", "--plot", "/dev/null/figure.svg"}).exit_code, 1);
}

TEST(BenchReduce, refuses_wrong_usage_with_two) {
  EXPECT_EQ(run_farsum({"bench", "reduce"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--model", "--no-such-option"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--model", "--simulate"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--model", "--seed", "2"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--model", "--pairs", "2"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--overlap", "--by-ranks"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--overlap", "--calls", "5"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "reduce", "--overlap", "--hogs", "1"}).exit_code, 2);
  const Ended help = run_farsum({"bench", "reduce", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
}

}  // namespace
}  // namespace farsum::cli::test
