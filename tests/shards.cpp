// Linked into test programs of which each process runs a share of the cases (cmake/Tests.cmake). Removes the variables
// once gtest has read them, so that a program that a test starts runs all its cases.
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
