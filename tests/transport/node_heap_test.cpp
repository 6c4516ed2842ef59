// Where the heap of the node segment puts extents.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "mib.hpp"
#include "transport/shm/kept_extents.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {
namespace {

constexpr std::uint32_t me = 1;
using test::mib;

std::unique_ptr<NodeSegment> segment_of(std::uint64_t bytes) {
  Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create({.ranks = 1, .segment_bytes = bytes});
  EXPECT_TRUE(made.is_ok());
  return made.is_ok() ? std::move(made.value()) : nullptr;
}

TEST(NodeHeap, is_mapped_on_a_boundary_of_huge_pages) {
  for (const std::uint64_t bytes : {64 * mib, 128 * mib + page_bytes}) {
    const auto segment = segment_of(bytes);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->begin()) % huge_page_bytes, 0U);
    // The last page is there, for who has reached it.
    EXPECT_FALSE(segment->contains(segment->begin() + bytes - 1, 1) && bytes > SegmentMap::most_step_bytes);
    ASSERT_TRUE(segment->reach({bytes - 1, 1}).is_ok());
    EXPECT_TRUE(segment->contains(segment->begin() + bytes - 1, 1));
    *(segment->at(bytes) - 1) = std::byte{1};
  }
}

TEST(NodeHeap, puts_what_goes_over_whole_huge_pages_where_they_can_be_mapped) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  for (const std::uintptr_t address : {std::uintptr_t{0}, std::uintptr_t{4096}, 3 * huge_page_bytes - 4096}) {
    const Result<HeapExtent> extent = segment->allocate_for(address, 4 * mib, 0, me);
    ASSERT_TRUE(extent.is_ok());
    EXPECT_EQ(extent.value().offset % huge_page_bytes, address % huge_page_bytes);
    EXPECT_EQ(extent.value().bytes, 4 * mib);
  }
}

TEST(NodeHeap, leaves_what_lies_before_such_a_place_to_others_and_has_all_back_in_the_end) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  Result<HeapExtent> extent = segment->allocate_for(0, 4 * mib, 0, me);
  ASSERT_TRUE(extent.is_ok());
  Result<HeapExtent> small = segment->allocate(page_bytes, me);
  ASSERT_TRUE(small.is_ok());
  EXPECT_LT(small.value().offset, extent.value().offset);
  segment->release(extent.value(), me);
  segment->release(small.value(), me);
  EXPECT_EQ(segment->heap().allocated_bytes(), 0U);
  EXPECT_TRUE(segment->allocate(60 * mib, me).is_ok());
}

TEST(NodeHeap, puts_it_anywhere_where_no_such_place_has_room) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  const Result<HeapExtent> first = segment->allocate(page_bytes, me);
  ASSERT_TRUE(first.is_ok());
  const std::uint64_t rest = segment->bytes() - (first.value().offset + page_bytes);
  const Result<HeapExtent> extent = segment->allocate_for(first.value().offset, rest, 0, me);
  ASSERT_TRUE(extent.is_ok());
  EXPECT_EQ(extent.value().offset, first.value().offset + page_bytes);
}

// ---- extents that wait for the next of their length ----

constexpr std::uint64_t long_bytes = mib;  // longer than what keeps its pages in any case

bool is_zero(NodeSegment& segment, const HeapExtent& extent) {
  const std::byte* const begin = segment.at(extent.offset);
  return std::all_of(begin, begin + extent.bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

HeapExtent reached_extent(NodeSegment& segment, std::uint64_t bytes) {
  const Result<HeapExtent> extent = segment.allocate(bytes, me);
  EXPECT_TRUE(extent.is_ok() && segment.reach(extent.value()).is_ok());
  return extent.value();
}

TEST(KeptPages, are_zeroed_and_go_to_the_next_of_their_length_alone) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  const HeapExtent first = reached_extent(*segment, long_bytes);
  std::fill_n(segment->at(first.offset), first.bytes, std::byte{0xff});
  segment->release(first, me);
  EXPECT_EQ(segment->heap().kept_bytes(), long_bytes);
  EXPECT_EQ(segment->heap().allocated_bytes(), 0U);
  const HeapExtent shorter = reached_extent(*segment, long_bytes - page_bytes);
  EXPECT_NE(shorter.offset, first.offset);
  const HeapExtent again = reached_extent(*segment, long_bytes);
  EXPECT_EQ(again.offset, first.offset);
  EXPECT_EQ(segment->heap().kept_bytes(), 0U);
  EXPECT_TRUE(is_zero(*segment, again));
  EXPECT_TRUE(is_zero(*segment, shorter));
}

TEST(KeptPages, are_nobodys_and_not_for_promotions) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  const HeapExtent first = reached_extent(*segment, long_bytes);
  EXPECT_TRUE(segment->is_allocated({first.offset + page_bytes, page_bytes}, me));
  std::fill_n(segment->at(first.offset), first.bytes, std::byte{0xff});
  segment->release(first, me);
  ASSERT_EQ(segment->heap().kept_bytes(), long_bytes);
  EXPECT_FALSE(segment->is_allocated({first.offset + page_bytes, page_bytes}, me));
  const Result<HeapExtent> promoted = segment->allocate_for(0, long_bytes, 0, me);
  ASSERT_TRUE(promoted.is_ok());
  EXPECT_NE(promoted.value().offset, first.offset);
  EXPECT_EQ(segment->heap().kept_bytes(), long_bytes);
}

TEST(KeptPages, are_those_that_were_touched) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  const HeapExtent first = reached_extent(*segment, 16 * mib);
  // The first, some in the middle, and the last, with more pages before and behind that are another's.
  const HeapExtent behind = reached_extent(*segment, 16 * mib);
  std::fill_n(segment->at(behind.offset), behind.bytes, std::byte{0xee});
  for (const std::uint64_t at : {std::uint64_t{0}, 5 * mib, 16 * mib - page_bytes})
    std::fill_n(segment->at(first.offset + at), page_bytes, std::byte{0xff});
  segment->release(first, me);
  EXPECT_GE(segment->heap().kept_bytes(), 3 * page_bytes);
  EXPECT_LT(segment->heap().kept_bytes(), 16 * mib);
  const HeapExtent again = reached_extent(*segment, 16 * mib);
  EXPECT_EQ(again.offset, first.offset);
  EXPECT_TRUE(is_zero(*segment, again));
  EXPECT_EQ(*segment->at(behind.offset), std::byte{0xee});
}

TEST(KeptPages, give_way_to_what_has_no_room_beside_them) {
  const auto segment = segment_of(64 * mib);
  ASSERT_NE(segment, nullptr);
  std::vector<HeapExtent> extents;
  for (int i = 0; i < 8; ++i) extents.push_back(reached_extent(*segment, 4 * mib));
  for (const HeapExtent& extent : extents) *segment->at(extent.offset + 4 * mib - 1) = std::byte{1};
  for (const HeapExtent& extent : extents) segment->release(extent, me);
  EXPECT_NE(segment->heap().kept_bytes(), 0U);
  const HeapExtent all = reached_extent(*segment, 50 * mib);
  EXPECT_EQ(segment->heap().kept_bytes(), 0U);
  EXPECT_TRUE(is_zero(*segment, all));
}

TEST(KeptPages, are_none_where_the_extent_is_not_mapped) {
  const auto segment = segment_of(512 * mib);
  ASSERT_NE(segment, nullptr);
  const Result<HeapExtent> extent = segment->allocate(256 * mib, me);
  ASSERT_TRUE(extent.is_ok());
  segment->release(extent.value(), me);
  EXPECT_EQ(segment->heap().kept_bytes(), 0U);
  EXPECT_TRUE(segment->allocate(500 * mib, me).is_ok());
}

TEST(KeptPages, are_bounded_and_the_oldest_go_first) {
  KeptExtents kept{};
  EXPECT_FALSE(kept.add({{0, mib}, page_bytes}));
  kept.set_most_bytes(3 * mib);
  EXPECT_TRUE(kept.add({{0, 2 * mib}, 2 * mib}));
  EXPECT_TRUE(kept.add({{4 * mib, 2 * mib}, mib}));
  EXPECT_FALSE(kept.add({{8 * mib, mib}, page_bytes}));
  EXPECT_EQ(kept.bytes(), 3 * mib);
  EXPECT_FALSE(kept.take(mib, page_bytes).has_value());
  EXPECT_EQ(kept.take_oldest()->extent.offset, 0U);
  EXPECT_TRUE(kept.add({{8 * mib + page_bytes, 2 * mib}, mib}));
  EXPECT_EQ(kept.take(2 * mib, 2 * mib)->extent.offset, 4 * mib);
  EXPECT_EQ(kept.bytes(), mib);
}

}  // namespace
}  // namespace farsum
