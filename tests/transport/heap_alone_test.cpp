// The heap and meetings over it, without a node segment.
#include "transport/heap_alone.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "mib.hpp"

namespace farsum {
namespace {

using test::HeapAlone;

constexpr std::uint32_t first_rank = HeapAlone::first_rank, second_rank = HeapAlone::second_rank;
constexpr std::uint64_t heap_bytes = 64 * test::mib;

TEST(HeapAloneTest, has_all_back_in_the_end) {
  HeapAlone alone(heap_bytes);
  const Result<HeapExtent> half = alone.heap().allocate(heap_bytes / 2, first_rank);
  const Result<HeapExtent> page = alone.heap().allocate(1, second_rank);
  ASSERT_TRUE(half.is_ok() && page.is_ok());
  EXPECT_EQ(page.value().bytes, page_bytes);
  EXPECT_EQ(alone.heap().allocated_bytes(), heap_bytes / 2 + page_bytes);
  EXPECT_EQ(alone.heap().allocate(heap_bytes, first_rank).take_status().code(), Code::no_memory);
  alone.heap().release(half.value(), first_rank);
  alone.heap().discard(page.value(), second_rank);
  EXPECT_EQ(alone.heap().allocated_bytes(), 0U);
  EXPECT_TRUE(alone.heap().allocate(heap_bytes, first_rank).is_ok());
}

TEST(HeapAloneTest, zeroes_what_it_takes_back) {
  HeapAlone alone(heap_bytes);
  for (const std::uint64_t bytes : {std::uint64_t{page_bytes}, std::uint64_t{test::mib}}) {
    const HeapExtent extent = alone.heap().allocate(bytes, first_rank).value();
    ASSERT_TRUE(alone.map().reach(extent.offset, extent.bytes).is_ok());
    std::fill_n(alone.at(extent.offset), bytes, std::byte{1});
    alone.heap().release(extent, first_rank);
    const HeapExtent again = alone.heap().allocate(bytes, first_rank).value();
    EXPECT_EQ(again.offset, extent.offset);
    EXPECT_TRUE(std::all_of(alone.at(again.offset), alone.at(again.offset) + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(HeapAloneTest, unmaps_what_nobody_has) {
  HeapAlone alone(heap_bytes);
  const HeapExtent extent = alone.heap().allocate(2 * huge_page_bytes, first_rank).value();
  ASSERT_TRUE(alone.map().reach(0, heap_bytes).is_ok());
  alone.heap().leave_free_memory(first_rank);
  EXPECT_TRUE(alone.map().is_reached(extent.offset, extent.bytes));
  EXPECT_FALSE(alone.map().is_reached(heap_bytes - page_bytes, page_bytes));
}

TEST(HeapAloneTest, refuses_all_once_a_rank_died_that_changed_it) {
  HeapAlone alone(heap_bytes);
  const HeapExtent extent = alone.heap().allocate(page_bytes, first_rank).value();
  alone.die_inside();
  EXPECT_EQ(alone.heap().allocate(page_bytes, first_rank).take_status().code(), Code::peer_failed);
  alone.heap().release(extent, first_rank);
  EXPECT_EQ(alone.heap().allocated_bytes(), page_bytes);
  EXPECT_FALSE(alone.heap().is_allocated(extent, first_rank));
}

TEST(ExtentMeetingsTest, give_all_who_name_a_key_one_extent) {
  HeapAlone alone(heap_bytes);
  ExtentMeetings& meetings = alone.meetings();
  const HeapExtent first = meetings.meet({{1, 2}}, 2, page_bytes, first_rank).value();
  const HeapExtent other = meetings.meet({{1, 3}}, 2, page_bytes, first_rank).value();
  const HeapExtent second = meetings.meet({{1, 2}}, 2, page_bytes, second_rank).value();
  EXPECT_EQ(first.offset, second.offset);
  EXPECT_NE(first.offset, other.offset);
  // Over: the same key is another meeting.
  EXPECT_NE(meetings.meet({{1, 2}}, 2, page_bytes, first_rank).value().offset, first.offset);
  EXPECT_EQ(alone.heap().allocated_bytes(), 3 * page_bytes);
}

TEST(ExtentMeetingsTest, are_no_more_at_once_than_the_table_holds) {
  HeapAlone alone(heap_bytes);
  ExtentMeetings& meetings = alone.meetings();
  ASSERT_TRUE(meetings.meet({{1, 0}}, 2, page_bytes, first_rank).is_ok());
  ASSERT_TRUE(meetings.meet({{2, 0}}, 2, page_bytes, first_rank).is_ok());
  EXPECT_EQ(meetings.meet({{3, 0}}, 2, page_bytes, first_rank).take_status().code(), Code::no_memory);
  EXPECT_TRUE(meetings.meet({{1, 0}}, 2, page_bytes, second_rank).is_ok());
  EXPECT_TRUE(meetings.meet({{3, 0}}, 2, page_bytes, first_rank).is_ok());
}

TEST(ExtentMeetingsTest, fail_for_all_where_the_first_finds_no_room) {
  HeapAlone alone(heap_bytes);
  ExtentMeetings& meetings = alone.meetings();
  EXPECT_EQ(meetings.meet({{1, 0}}, 2, 2 * heap_bytes, first_rank).take_status().code(), Code::no_memory);
  ASSERT_TRUE(alone.heap().allocate(heap_bytes / 2, first_rank).is_ok());
  EXPECT_EQ(meetings.meet({{1, 0}}, 2, page_bytes, second_rank).take_status().code(), Code::no_memory);
  EXPECT_TRUE(meetings.meet({{1, 0}}, 2, page_bytes, first_rank).is_ok());
}

}  // namespace
}  // namespace farsum
