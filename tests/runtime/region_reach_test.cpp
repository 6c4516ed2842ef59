// How memory is described, and how what is described is reached.
#include "runtime/region_reach.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "lone_rank.hpp"
#include "runtime/window_offer.hpp"

namespace farsum::test {
namespace {

class RegionReachTest : public testing::Test {
 protected:
  WindowWish wish_of(void* memory, std::uint64_t bytes) {
    WindowWish wish;
    wish.flavour = Flavour::adopted;
    wish.memory = static_cast<std::byte*>(memory);
    wish.bytes = bytes;
    return wish;
  }

  LoneRankWithWindows rank;
  std::vector<std::byte> own = std::vector<std::byte>(4096);
};

TEST_F(RegionReachTest, takes_own_memory_as_it_lies_with_the_note_it_was_described_with) {
  DescribedMemory all;
  rank.descriptions.describe(wish_of(own.data(), own.size()), "user memory", all);
  ASSERT_EQ(all.shared.size(), 1u);
  ASSERT_EQ(all.exposed.size(), 1u);
  EXPECT_TRUE(all.exposed[0].guarded) << "the program may free it";
  const Region region = rank.reach.of_neighbour(0, all.shared[0]);
  EXPECT_EQ(region.mapped, own.data());
  EXPECT_EQ(region.bytes, own.size());
  EXPECT_STREQ(region.note, "user memory");
  EXPECT_EQ(region.domain.locks, rank.node.block().stripes);
}

TEST_F(RegionReachTest, has_memory_of_the_node_under_the_locks_of_the_node) {
  Result<HeapExtent> extent = rank.node.segment().allocate(4096, rank.node.id_in_segment());
  ASSERT_TRUE(extent.is_ok());
  std::byte* const memory = rank.node.segment().at(extent.value().offset);
  EXPECT_TRUE(rank.reach.map(memory, 4096));
  DescribedMemory all;
  rank.descriptions.describe(wish_of(memory, 4096), "user memory", all);
  ASSERT_EQ(all.shared.size(), 1u);
  const Region region = rank.reach.of_neighbour(0, all.shared[0]);
  EXPECT_EQ(region.mapped, memory);
  EXPECT_EQ(region.domain.locks, rank.node.segment().stripes());
  EXPECT_FALSE(all.exposed[0].guarded);
  rank.extents.give_back(extent.value());
}

// Memory of the node in so many stretches, of which every other is one that only CPU atomics may touch.
class MarkedStretches : public RegionReachTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr std::uint64_t stretch_bytes = 4096;

  MarkedStretches() {
    for (std::uint64_t i = 0; i < stretches; i += 2)
      EXPECT_TRUE(segment.mark_atomics_only({begin + i * stretch_bytes, stretch_bytes}, rank.node.id_in_segment()));
  }
  ~MarkedStretches() override {
    for (std::uint64_t i = 0; i < stretches; i += 2)
      segment.unmark_atomics_only({begin + i * stretch_bytes, stretch_bytes}, rank.node.id_in_segment());
    rank.extents.give_back(extent);
  }
  DescribedMemory described(std::byte* memory, std::uint64_t bytes) {
    DescribedMemory all;
    rank.descriptions.describe(wish_of(memory, bytes), "user memory", all);
    return all;
  }

  const std::uint64_t stretches = GetParam();
  NodeSegment& segment = rank.node.segment();
  const HeapExtent extent = segment.allocate(stretches * stretch_bytes, rank.node.id_in_segment()).value();
  const std::uint64_t begin = extent.offset;
};
INSTANTIATE_TEST_SUITE_P(Stretches, MarkedStretches, testing::Values(2, 15, 16, 17, 40),
                         testing::PrintToStringParamName());

TEST_P(MarkedStretches, leave_atomics_to_the_owner_where_they_are_more_than_can_be_told) {
  const DescribedMemory all = described(segment.at(begin), stretches * stretch_bytes);
  ASSERT_EQ(all.shared.size(), std::min<std::uint64_t>(stretches, most_adopted_regions));
  std::uint64_t end = 0;
  for (const SharedRegion& shared : all.shared) {
    EXPECT_EQ(shared.offset, end);
    end += shared.bytes;
    const Region region = rank.reach.of_neighbour(0, shared);
    const bool is_mixed = shared.bytes != stretch_bytes;
    EXPECT_EQ(region.mixed_locks, is_mixed);
    EXPECT_EQ(region.domain.atomics_only, !is_mixed && shared.offset % (2 * stretch_bytes) == 0);
    EXPECT_EQ(region.mapped, segment.at(begin + shared.offset));
    EXPECT_EQ(region.bulk, Path::direct);
    EXPECT_EQ(region.atomic, is_mixed ? Path::owner : Path::direct);
  }
  EXPECT_EQ(end, stretches * stretch_bytes);
  EXPECT_EQ(rank.reach.of_neighbour(0, all.shared.back()).mixed_locks, stretches > most_adopted_regions);
  ASSERT_EQ(all.exposed.size(), stretches) << "the owner knows each";
  for (std::uint64_t i = 0; i < stretches; ++i) {
    EXPECT_EQ(all.exposed[i].offset, i * stretch_bytes);
    EXPECT_EQ(all.exposed[i].domain.atomics_only, i % 2 == 0);
  }
}

TEST_P(MarkedStretches, are_told_of_behind_what_lies_before_the_segment) {
  std::byte* const before = segment.at(0) - stretch_bytes;
  const std::uint64_t bytes = static_cast<std::uint64_t>(segment.at(begin) - before) + stretches * stretch_bytes;
  const DescribedMemory all = described(before, bytes);
  // One lies before the segment, and one between its beginning and the first of these.
  EXPECT_EQ(all.shared.size(), std::min<std::uint64_t>(stretches + 2, most_adopted_regions));
  EXPECT_EQ(all.exposed.size(), stretches + 2);
  EXPECT_EQ(all.shared.front().segment_offset, not_in_segment);
  EXPECT_EQ(all.shared.back().offset + all.shared.back().bytes, bytes);
  EXPECT_EQ(rank.reach.of_neighbour(0, all.shared.back()).mixed_locks, stretches + 2 > most_adopted_regions);
}

TEST_F(RegionReachTest, maps_nothing_that_is_not_the_node_s) { EXPECT_FALSE(rank.reach.map(own.data(), own.size())); }

TEST_F(RegionReachTest, finds_out_what_is_only_read_and_what_is_not_there) {
  constexpr std::size_t page = 4096;
  void* const mapped = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  WindowWish wish = wish_of(mapped, 2 * page);
  EXPECT_TRUE(rank.descriptions.look_at(wish, "test").is_ok());
  EXPECT_TRUE(wish.read_only);
  ASSERT_EQ(mprotect(mapped, page, PROT_NONE), 0);
  wish = wish_of(mapped, 2 * page);
  EXPECT_TRUE(rank.descriptions.look_at(wish, "test").is_ok());
  EXPECT_EQ(wish.parts.size(), 2u);
  ASSERT_EQ(mprotect(mapped, 2 * page, PROT_NONE), 0);
  wish = wish_of(mapped, 2 * page);
  EXPECT_EQ(rank.descriptions.look_at(wish, "test").code(), Code::unreachable);
  munmap(mapped, 2 * page);
}

// Who has got a model keeps it.
TEST_F(RegionReachTest, asks_models_that_stay_where_they_are) {
  const PathModel* const first = &rank.models.at(1);
  for (std::uint32_t machine = 2; machine < 40; ++machine) rank.models.at(machine);
  EXPECT_EQ(&rank.models.at(1), first);
}

}  // namespace
}  // namespace farsum::test
