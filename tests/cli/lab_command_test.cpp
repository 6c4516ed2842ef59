// `farsum lab`: what it lists and refuses, and its table of two runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/lab/lab_table.hpp"
#include "launched_job.hpp"

namespace farsum::cli::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LabTable, sets_equal_cases_side_by_side_with_their_ratio) {
  const auto without = lab_records(
      R"({"program":"p","memory":"user","case":1,"repeats":3,"task_us":9.5,"get_us":{"median":40.0,"low":1.0}}
not a record
{"program":"p","memory":"user","case":2,"repeats":3,"task_us":9.5,"get_us":{"median":50.0,"low":1.0}}
)");
  const auto with = lab_records(
      R"({"program":"p","memory":"user","case":2,"repeats":3,"task_us":9.5,"get_us":{"median":5.0,"low":1.0}})");
  const LabTable table = compare_lab_records(without, with);
  EXPECT_THAT(table.label_names, ElementsAre("case"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(print_lab_table(table),
            "case  measure  without  with  with/without\n"
            "1     get_us        40     -             -\n"
            "2     get_us        50     5           0.1\n");
}

TEST(LabTable, keeps_what_was_left_out_as_a_note) {
  const auto records = lab_records(R"({"mode":"fence","excluded":"for a reason"})");
  const LabTable table = compare_lab_records(records, records);
  EXPECT_THAT(table.notes, ElementsAre("excluded: for a reason, mode: fence"));
  EXPECT_TRUE(table.rows.empty());
}

// In make test-all: `make test` builds no labs.
TEST(LabCommand, lists_programs_and_refuses_others_with_two) {
  EXPECT_TRUE(nlohmann::json::parse(run_farsum({"lab", "--json"}).out).is_array());
  const Ended unknown = run_farsum({"lab", "no-such-program"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no lab program called no-such-program; there "));
}

TEST(LabCommand, and_mpi_have_help_with_examples) {
  for (const char* command : {"lab", "mpi"})
    EXPECT_THAT(run_farsum({command, "--help"}).out, HasSubstr("Examples:")) << command;
}

TEST(InfoCommand, lists_the_mpi_fronts_and_libraries) {
  const auto report = nlohmann::json::parse(run_farsum({"info", "--json"}).out);
  EXPECT_EQ(report.at("mpi_fronts").size(), 3u);
  EXPECT_TRUE(report.at("mpi_libraries").is_array());
}

TEST(InfoCommand, lists_the_settings_of_the_mpi_fronts) {
  const std::string text = run_farsum({"info", "--settings"}).out;
  for (const char* name : {"FARSUM_MPI_STATS", "FARSUM_MPI_STATS_FILE", "FARSUM_MPI_LAUNCHED", "FARSUM_MPI_OFF"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
  EXPECT_EQ(run_farsum({"run", "--env", "FARSUM_MPI_OFF=maybe", FARSUM_BIN_DIR "/farsum", "info"}).exit_code, 2);
}

}  // namespace
}  // namespace farsum::cli::test
