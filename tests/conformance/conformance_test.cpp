// What tools/conformance does before and after a job runs. The jobs are its own: make test runs the short ones.
#include <gtest/gtest.h>

#include <string>

#include "shell.hpp"

namespace {

TEST(ConformanceReports, are_read_and_judged_as_their_own_tests_say) {
  const farsum::test::Ended run =
      farsum::test::shell(std::string(FARSUM_SOURCE_DIR) + "/tests/conformance/reports_test.py");
  EXPECT_EQ(run.status, 0) << run.output;
}

}  // namespace
