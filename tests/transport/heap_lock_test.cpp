// The lock of the node segment's heap, over words of this process.
#include "transport/shm/heap_lock.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "transport/heap_alone.hpp"

namespace farsum {
namespace {

using HeapLockTest = test::WithHeapLock;

TEST_F(HeapLockTest, is_held_as_long_as_its_guard_lives) {
  {
    const HeapLock::Guard guard(lock_, mine);
    EXPECT_TRUE(guard.usable());
    EXPECT_EQ(word_.holder(), mine);
  }
  EXPECT_EQ(word_.holder(), 0U);
}

TEST_F(HeapLockTest, is_taken_over_from_a_holder_that_died_and_guards_nothing_usable_from_then_on) {
  ranks_[1].pid.store(test::ended_process(), std::memory_order_relaxed);
  ASSERT_TRUE(word_.try_acquire(others));
  for (int i = 0; i < 2; ++i) {
    const HeapLock::Guard guard(lock_, mine);
    EXPECT_FALSE(guard.usable());
    const Status refusal = guard.refusal();
    EXPECT_EQ(refusal.code(), Code::peer_failed);
    EXPECT_THAT(refusal.text(), testing::StartsWith("rank 1 of the job died"));
  }
  EXPECT_EQ(word_.holder(), 0U);
  EXPECT_EQ(broken_by_.load(std::memory_order_relaxed), others);
}

TEST_F(HeapLockTest, is_the_one_word_of_all_who_share_it) {
  HeapLock another(word_, broken_by_, ranks_);
  const HeapLock::Guard guard(another, others);
  EXPECT_EQ(lock_.word().holder(), others);
}

}  // namespace
}  // namespace farsum
