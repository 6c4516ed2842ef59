// The tables of docs/LAB.md: tools/lab_evidence's reader and writer, tested in their own language.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

namespace {

TEST(LabEvidence, writes_tables_as_its_own_tests_say) {
  const int status = std::system(FARSUM_SOURCE_DIR "/tests/cli/lab_tables_test.py");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
