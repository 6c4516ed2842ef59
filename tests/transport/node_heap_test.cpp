// Where the heap of the node segment puts extents.
#include <gtest/gtest.h>

#include "transport/shm/node_segment.hpp"

namespace farsum {
namespace {

constexpr std::uint32_t me = 1;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;

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
  EXPECT_EQ(segment->allocated_bytes(), 0U);
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

}  // namespace
}  // namespace farsum
