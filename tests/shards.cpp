// Linked into test programs that run a share of their cases (cmake/Tests.cmake): once that is chosen, what they start
// is told nothing of shares, and runs all that it is asked for.
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

class ForgetsShares : public testing::Environment {
 public:
  void SetUp() override {
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
  }
};

[[maybe_unused]] testing::Environment* const forgets_shares = testing::AddGlobalTestEnvironment(new ForgetsShares);

}  // namespace
