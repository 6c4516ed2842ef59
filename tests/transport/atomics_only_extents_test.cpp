// Marks of memory that only CPU atomics may touch, in an array.
#include "transport/shm/atomics_only_extents.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "transport/heap_alone.hpp"

namespace farsum {
namespace {

class AtomicsOnlyExtentsTest : public test::WithHeapLock {
 protected:
  std::uint32_t count_ = 0;
  std::array<HeapExtent, 2> table_{};
  AtomicsOnlyExtents marks_{lock_, count_, table_};
};

TEST_F(AtomicsOnlyExtentsTest, are_found_from_the_first_on_and_cut_to_what_was_asked) {
  ASSERT_TRUE(marks_.mark({500, 100}, mine));
  ASSERT_TRUE(marks_.mark({100, 100}, mine));
  const HeapExtent first = marks_.first_in(150, 400, mine);
  EXPECT_EQ(first.offset, 150U);
  EXPECT_EQ(first.bytes, 50U);
  const HeapExtent second = marks_.first_in(200, 350, mine);
  EXPECT_EQ(second.offset, 500U);
  EXPECT_EQ(second.bytes, 50U);
  EXPECT_EQ(marks_.first_in(200, 300, mine).bytes, 0U);
}

TEST_F(AtomicsOnlyExtentsTest, are_no_more_than_the_table_holds) {
  EXPECT_TRUE(marks_.mark({0, 10}, mine));
  EXPECT_TRUE(marks_.mark({10, 10}, mine));
  EXPECT_FALSE(marks_.mark({20, 10}, mine));
  marks_.unmark({0, 10}, mine);
  EXPECT_EQ(marks_.first_in(0, 10, mine).bytes, 0U);
  EXPECT_TRUE(marks_.mark({20, 10}, mine));
}

TEST_F(AtomicsOnlyExtentsTest, stay_as_they_are_once_a_rank_died_that_held_the_lock) {
  ASSERT_TRUE(marks_.mark({0, 10}, mine));
  ranks_[1].pid.store(test::ended_process(), std::memory_order_relaxed);
  ASSERT_TRUE(word_.try_acquire(others));
  EXPECT_FALSE(marks_.mark({10, 10}, mine));
  marks_.unmark({0, 10}, mine);
  EXPECT_EQ(count_, 1U);
}

}  // namespace
}  // namespace farsum
