// The file of serial reductions: what is read, what is refused, and that its times make the model.
#include "runtime/reduction_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "cost/serial_fit.hpp"
#include "measured_file.hpp"
#include "measured_reductions.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

SerialReductions measured_on_paper() { return test::measured_reductions(cost::paper_model()); }

class ReductionFile : public MeasuredFile {
 protected:
  ReductionFile() : MeasuredFile(reduction_file) {}
  void write_good() const override {
    EXPECT_TRUE(write_serial_reductions(folder_, measured_on_paper(), "today").is_ok());
  }
  void expect_refused(const std::string& why) const override {
    const ReductionParameters read = read_reduction_parameters(folder_);
    EXPECT_FALSE(read.is_measured());
    EXPECT_EQ(read.source, "built in");
    EXPECT_EQ(read.model.latency_us, cost::paper_model().latency_us);
    EXPECT_THAT(read.complaint, HasSubstr(why));
  }
};

TEST_F(ReductionFile, has_times_whose_fit_is_the_model) {
  write_good();
  const ReductionParameters read = read_reduction_parameters(folder_);
  EXPECT_TRUE(read.is_measured());
  EXPECT_EQ(read.complaint, "");
  EXPECT_EQ(read.when, "today");
  EXPECT_EQ(read.source, reduction_file(folder_));
  const cost::ReductionModel& paper = cost::paper_model();
  EXPECT_NEAR(read.model.latency_us, paper.latency_us, 1e-6);
  EXPECT_NEAR(read.model.receive_us, paper.receive_us, 1e-6);
  ASSERT_EQ(read.model.combines.size(), paper.combines.size());
  for (std::size_t row = 0; row < paper.combines.size(); ++row) {
    EXPECT_EQ(read.model.combines[row].op, paper.combines[row].op);
    EXPECT_NEAR(read.model.combines[row].overhead_us, paper.combines[row].overhead_us, 1e-6);
    for (std::size_t i = 0; i < cost::listed_elements.size(); ++i)
      EXPECT_NEAR(read.model.combines[row].combine_us[i], paper.combines[row].combine_us[i], 1e-6);
  }
  for (const auto& residuals : read.fitted.residuals_us)
    for (const double residual : residuals) EXPECT_NEAR(residual, 0, 1e-6);
}

TEST_F(ReductionFile, that_is_missing_is_no_reason_to_complain) {
  for (const std::string& folder : {folder_, std::string()}) {
    const ReductionParameters read = read_reduction_parameters(folder);
    EXPECT_FALSE(read.is_measured());
    EXPECT_EQ(read.complaint, "");
  }
}

TEST_F(ReductionFile, that_is_damaged_is_named_and_not_used) { expect_damage_is_named(); }

TEST_F(ReductionFile, of_another_machine_version_or_class_is_not_used) {
  expect_strangers_are_refused("reductions", "node");
}

TEST_F(ReductionFile, with_a_value_that_no_machine_has_is_not_used) {
  for (const char* value : {"0", "-1", "1.5", "\"1\"", "null", "1e300"}) {
    replace("\"processors\":13", std::string("\"processors\":") + value);
    expect_refused("conditions");
  }
  for (const char* from : {"\"operator\":\"max\"", "\"type\":\"int32_t\"", "\"elements\":1", "[[2,"}) {
    const std::string key(from, std::string(from).find_last_of(":[") + 1);
    for (const char* value : {"-1", "\"nothing\"", "null", "{}"}) {
      replace(from, key + value + (key.back() == '[' ? "," : ""));
      expect_refused("one of its rows");
    }
  }
}

// Such as of one number of ranks only, or without what combines nothing.
TEST_F(ReductionFile, of_times_that_make_no_model_is_not_used) {
  SerialReductions measured = measured_on_paper();
  measured.curves.resize(4);
  ASSERT_TRUE(write_serial_reductions(folder_, measured, "today").is_ok());
  expect_refused("no model");
  measured.curves.clear();
  ASSERT_TRUE(write_serial_reductions(folder_, measured, "today").is_ok());
  expect_refused("no model");
  measured = measured_on_paper();
  measured.curves.front().times.resize(1);
  ASSERT_TRUE(write_serial_reductions(folder_, measured, "today").is_ok());
  expect_refused("no model");
}

// What rank 0 tells.
TEST_F(ReductionFile, is_the_table_of_a_job_unless_the_settings_say_otherwise) {
  const auto no_variables = [](const char*) -> const char* { return nullptr; };
  Settings settings;
  settings.model = folder_;
  EXPECT_EQ(read_tree_rule(settings, no_variables).has_table, 0U) << "nothing is measured";
  write_good();
  const cost::TreeRule rule = read_tree_rule(settings, no_variables);
  EXPECT_EQ(rule.has_table, 1U);
  EXPECT_EQ(rule.forced_degree, 0U);
  EXPECT_EQ(rule.table.latency_ns, 2100U);
  EXPECT_EQ(rule.table.rows().size(), cost::paper_model().combines.size());
  settings.reduce_degree = 3;
  EXPECT_EQ(read_tree_rule(settings, no_variables).has_table, 0U);
  EXPECT_EQ(read_tree_rule(settings, no_variables).forced_degree, 3U);
  settings.reduce_degree = 0;
  settings.reduce_model = ReduceModel::off;
  EXPECT_EQ(read_tree_rule(settings, no_variables).has_table, 0U);
}

}  // namespace
}  // namespace farsum
