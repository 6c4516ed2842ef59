// The table of free stretches, in an array.
#include "transport/shm/free_extents.hpp"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace farsum {
namespace {

constexpr HeapAlignment any{1, 0};

// 1000 bytes from 0 are free, and the table has room for three stretches.
class FreeExtentsTest : public ::testing::Test {
 protected:
  // The offset of what is cut, in a table that has such a stretch.
  std::uint64_t cut(std::uint64_t bytes, const HeapAlignment& alignment = any) {
    const HeapExtent extent = free_.cut(bytes, alignment);
    EXPECT_EQ(extent.bytes, bytes);
    return extent.offset;
  }

  std::array<HeapExtent, 3> table_ = {{{0, 1000}}};
  std::uint32_t count_ = 1;
  FreeExtents free_{count_, table_};
};

TEST_F(FreeExtentsTest, are_cut_from_the_first_that_has_room) {
  EXPECT_EQ(cut(100), 0U);
  EXPECT_EQ(cut(100), 100U);
  free_.join({0, 100});
  EXPECT_EQ(cut(200), 200U);
  EXPECT_EQ(cut(100), 0U);
  EXPECT_EQ(cut(600), 400U);
  EXPECT_TRUE(free_.all().empty());
  EXPECT_EQ(free_.cut(1, any).bytes, 0U);
}

TEST_F(FreeExtentsTest, leave_what_lies_before_and_behind_an_aligned_piece) {
  EXPECT_EQ(cut(64, {256, 16}), 16U);
  EXPECT_EQ(cut(64, {256, 16}), 256U + 16);
  ASSERT_EQ(free_.all().size(), 3U);
  EXPECT_EQ(free_.all()[1].offset, 80U);
  EXPECT_EQ(free_.all()[1].bytes, 192U);
  // A piece that would make a fourth has no room; one at the begin of a stretch has.
  EXPECT_EQ(free_.cut(64, {512, 500}).bytes, 0U);
  EXPECT_EQ(cut(16), 0U);
}

TEST_F(FreeExtentsTest, become_one_with_their_neighbours) {
  cut(1000);
  free_.join({300, 100});
  free_.join({100, 100});
  EXPECT_EQ(free_.all().size(), 2U);
  free_.join({200, 100});
  ASSERT_EQ(free_.all().size(), 1U);
  free_.join({0, 100});
  free_.join({400, 600});
  ASSERT_EQ(free_.all().size(), 1U);
  EXPECT_EQ(free_.all()[0].bytes, 1000U);
}

TEST_F(FreeExtentsTest, are_lost_where_the_table_is_full_and_they_touch_none) {
  cut(1000);
  for (const std::uint64_t offset : {0, 200, 400, 600}) free_.join({offset, 100});
  EXPECT_EQ(free_.all().size(), 3U);
  EXPECT_FALSE(free_.overlap({600, 100}));
}

TEST_F(FreeExtentsTest, overlap_with_what_has_a_byte_in_common) {
  cut(1000);
  free_.join({200, 100});
  EXPECT_FALSE(free_.overlap({100, 100}));
  EXPECT_TRUE(free_.overlap({100, 101}));
  EXPECT_TRUE(free_.overlap({250, 10}));
  EXPECT_TRUE(free_.overlap({299, 10}));
  EXPECT_FALSE(free_.overlap({300, 10}));
}

}  // namespace
}  // namespace farsum
