// What epochs towards other nodes leave behind where an allocation fails.
#include <gtest/gtest.h>

#include <new>

#include "failing_operators.hpp"
#include "remote_windows.hpp"

namespace farsum {
namespace {

// The allocations of a lock_all before it waits fail one after the other.
TEST(RemoteWindowWithoutMemory, holds_no_lock_after_a_lock_all_that_could_not_ask_for_all) {
  constexpr Rank ranks = 5;
  std::size_t failures = 0;
  for (;; ++failures) {
    RemoteWindows windows(ranks, {.ranks_of_a_node = 2});
    Status status;
    try {
      const FailingMemory failing(failures);
      status = windows[0].all_locks().lock();
    } catch (const std::bad_alloc&) {
      break;  // the job's own, while it waited
    }
    if (status.is_ok()) break;
    EXPECT_EQ(status.code(), Code::no_memory) << status.text();
    windows.settle();
    for (Rank target = 0; target < ranks; ++target)
      EXPECT_TRUE(windows.job.lock_view(target).try_lock(77, LockMode::exclusive)) << target << " of " << failures;
  }
  EXPECT_GE(failures, 3U) << "each of the ranks of other nodes takes an allocation at least";
}

}  // namespace
}  // namespace farsum
