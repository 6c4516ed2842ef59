// The file of measured trees: what is read back, and what is refused.
#include "runtime/tree_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "measured_file.hpp"
#include "runtime/reduction_models.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

class TreeFile : public MeasuredFile {
 protected:
  TreeFile() : MeasuredFile(tree_file) {}
  void write_good() const override {
    MeasuredTrees trees;
    trees.nodes = 13;
    trees.processors = 3;
    trees.curves = {{.vector = {ops::Operator::sum, ops::ElementType::float64, 1}, .times = {{2, 30.5}, {13, 36}}},
                    {.vector = {ops::Operator::sum, ops::ElementType::float64, 8}, .times = {{2, 40}}}};
    EXPECT_TRUE(write_measured_trees(folder_, trees, "today").is_ok());
  }
  void expect_refused(const std::string& why) const override {
    const MeasuredTrees read = read_measured_trees(folder_);
    EXPECT_FALSE(read.are_there());
    EXPECT_THAT(read.complaint, HasSubstr(why));
  }
};

TEST_F(TreeFile, has_the_times_that_were_written) {
  write_good();
  const MeasuredTrees read = read_measured_trees(folder_);
  EXPECT_TRUE(read.are_there());
  EXPECT_EQ(read.complaint, "");
  EXPECT_EQ(read.when, "today");
  EXPECT_EQ(read.source, tree_file(folder_));
  EXPECT_EQ(read.nodes, 13U);
  EXPECT_EQ(read.processors, 3U);
  ASSERT_EQ(read.curves.size(), 2U);
  EXPECT_EQ(read.curves[1].vector.elements, 8U);
  ASSERT_EQ(read.curves[0].times.size(), 2U);
  EXPECT_EQ(read.curves[0].times[1].degree, 13U);
  EXPECT_EQ(read.curves[0].times[0].us, 30.5);
}

TEST_F(TreeFile, lies_beside_that_of_the_parameters) { EXPECT_NE(tree_file(folder_), reduction_file(folder_)); }

TEST_F(TreeFile, that_is_missing_is_no_reason_to_complain) {
  for (const std::string& folder : {folder_, std::string()}) {
    const MeasuredTrees read = read_measured_trees(folder);
    EXPECT_FALSE(read.are_there());
    EXPECT_EQ(read.complaint, "");
  }
}

TEST_F(TreeFile, that_is_damaged_is_named_and_not_used) { expect_damage_is_named(); }

TEST_F(TreeFile, of_another_machine_version_or_class_is_not_used) {
  expect_strangers_are_refused("trees", "reductions");
}

TEST_F(TreeFile, with_a_value_that_no_machine_has_is_not_used) {
  for (const char* value : {"0", "-1", "1.5", "null"}) {
    replace("\"processors\":3", std::string("\"processors\":") + value);
    expect_refused("conditions");
    replace("\"nodes\":13", std::string("\"nodes\":") + value);
    expect_refused("conditions");
  }
  for (const char* pair : {"[1,", "[-2,", "[null,", "[2,2,"}) {
    replace("[2,", pair);
    expect_refused("one of its rows");
  }
  replace("[[2,40.0]]", "[]");
  expect_refused("one of its rows");
}

}  // namespace
}  // namespace farsum
