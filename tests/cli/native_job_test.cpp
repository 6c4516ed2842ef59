// Native programs under `farsum run`, as users start them: as many processes as ranks, no thread of the test among
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launched_job.hpp"

namespace farsum::cli::test {
namespace {

TEST(NativeJob, of_eight_processes_loses_nothing_at_one_lock_and_one_word) {
  const Ended ended = run_farsum({"run", "-n", "8", FARSUM_BIN_DIR "/tests/programs/hammer", "250"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "4000 counted, 4000 drawn\n");
  EXPECT_THAT(ended.err, testing::IsEmpty());
}

// Sleepers alone, and lookers alone where each has a processor.
TEST(NativeJob, loses_nothing_however_its_ranks_wait) {
  for (const char* spin : {"FARSUM_SPIN_NS=0", "FARSUM_SPIN_NS=1000000000"}) {
    const Ended ended = run_farsum({"run", "-n", "2", "--env", spin, FARSUM_BIN_DIR "/tests/programs/hammer", "2000"});
    EXPECT_EQ(ended.exit_code, 0) << spin << ": " << ended.err;
    EXPECT_EQ(ended.out, "8000 counted, 8000 drawn\n") << spin;
  }
}

}  // namespace
}  // namespace farsum::cli::test
