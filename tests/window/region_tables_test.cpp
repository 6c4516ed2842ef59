// What is read of the others' tables, when, and which regions hold a range.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "window/region_tables.hpp"

namespace farsum {
namespace {

constexpr std::uint32_t stranger = 1000;

// Whoever finds a lock held gives it up, so that a test tells what else would wait for ever.
class AllDead final : public Liveness {
 public:
  bool is_dead(std::uint32_t) const override { return true; }
  std::uint32_t declare_dead(std::uint32_t rank) const override { return rank; }
};

// What the first of so many ranks of a node knows of the others, each of which exposes one region.
class OneOfMany {
 public:
  OneOfMany(std::uint32_t ranks, bool dynamic) : shape_{ranks, 0, 1} {
    block_.resize((ranks * shape_.rank_bytes() + alignof(SharedLockState)) / sizeof(std::uint64_t));
    auto* const begin = reinterpret_cast<std::byte*>(
        round_up(reinterpret_cast<std::uintptr_t>(block_.data()), std::uint64_t{alignof(SharedLockState)}));
    agent_.id = 1;
    agent_.liveness = &liveness_;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const RankWindow& shared = shared_.emplace_back(begin + rank * shape_.rank_bytes(), shape_);
      shared.regions()->bytes = sizeof memory_;
      shared.head().region_count = 1;
      ranks_.push_back(rank);
    }
    tables = std::make_unique<RegionTables>(RegionTables::Sources{.ranks = ranks_,
                                                                  .shared = shared_,
                                                                  .told = told_,
                                                                  .agent = agent_,
                                                                  .dynamic = dynamic,
                                                                  .make = make_,
                                                                  .explain = explain_,
                                                                  .reach = reach_});
  }

  void hold_every_table() {
    for (const RankWindow& shared : shared_) EXPECT_TRUE(shared.head().table_lock.try_acquire(stranger));
  }
  std::uint32_t ranks() const { return shape_.ranks; }

  std::unique_ptr<RegionTables> tables;
  std::uint32_t regions_made = 0;
  std::uint32_t reasons_made = 0;

 private:
  WindowSharedShape shape_;
  std::vector<Rank> ranks_;
  std::vector<std::uint64_t> block_;
  std::vector<RankWindow> shared_;
  std::vector<RegionTable> told_;
  AllDead liveness_;
  LockAgent agent_;
  std::byte memory_[64] = {};
  std::function<Region(Rank, const SharedRegion&)> make_ = [this](Rank, const SharedRegion& shared) {
    ++regions_made;
    Region region;
    region.bytes = shared.bytes;
    region.mapped = memory_;
    region.bulk = region.atomic = Path::direct;
    return region;
  };
  std::function<std::string(std::uint32_t, const Region&)> explain_ = [this](std::uint32_t target, const Region&) {
    ++reasons_made;
    return "rank " + std::to_string(target);
  };
  std::function<bool(const void*, std::uint64_t)> reach_;
};

class RegionsOfMany : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RegionsOfMany, testing::Values(2, 4, 16), testing::PrintToStringParamName());

TEST_P(RegionsOfMany, are_read_once_without_a_lock_where_they_stay_as_they_are) {
  OneOfMany job(GetParam(), false);
  job.hold_every_table();
  for (int again = 0; again < 2; ++again) {
    for (std::uint32_t target = 0; target < job.ranks(); ++target)
      EXPECT_EQ(job.tables->read(target)->size(), 1U) << "target " << target;
  }
  EXPECT_EQ(job.regions_made, job.ranks());
}

TEST_P(RegionsOfMany, that_may_change_are_read_by_whoever_needs_them_first) {
  OneOfMany job(GetParam(), true);
  EXPECT_EQ(job.regions_made, 0U);
  EXPECT_NE(job.tables->at(1, 0, 64).region, nullptr);
  EXPECT_EQ(job.tables->at(1, 0, 65).region, nullptr);
  EXPECT_EQ(job.regions_made, 1U);
}

TEST_P(RegionsOfMany, are_explained_to_those_who_ask) {
  OneOfMany job(GetParam(), false);
  (void)job.tables->read(1);
  EXPECT_EQ(job.reasons_made, 0U);
  EXPECT_EQ(job.tables->explained(1).front().reason, "rank 1");
  EXPECT_EQ(job.reasons_made, 1U);
}

// Two regions that touch, a third behind a gap, and behind another two that touch, the last of mixed locks; of a rank
// of another node.
class RegionsOfAnotherNode : public testing::Test {
 protected:
  static Region region_of(std::uint64_t offset, std::uint64_t bytes, bool read_only = false, bool mixed_locks = false) {
    Region region;
    region.offset = offset;
    region.bytes = bytes;
    region.read_only = read_only;
    region.mixed_locks = mixed_locks;
    return region;
  }
  RegionsOfAnotherNode()
      : told_{std::make_shared<std::vector<Region>>(std::vector{region_of(0, 64), region_of(64, 64, true),
                                                                region_of(256, 64), region_of(512, 64),
                                                                region_of(576, 64, false, true)})},
        tables({.ranks = ranks_,
                .shared = shared_,
                .told = told_,
                .agent = agent_,
                .make = make_,
                .explain = explain_,
                .reach = reach_}) {
    (void)tables.read(0);
  }

  std::vector<Rank> ranks_ = {7};
  std::vector<RankWindow> shared_ = {RankWindow()};
  std::vector<RegionTable> told_;
  LockAgent agent_;
  std::function<Region(Rank, const SharedRegion&)> make_;
  std::function<std::string(std::uint32_t, const Region&)> explain_;
  std::function<bool(const void*, std::uint64_t)> reach_;
  RegionTables tables;
};

TEST_F(RegionsOfAnotherNode, hold_a_range_that_goes_on_in_the_next) {
  const RegionRef one = tables.at(0, 8, 56);
  EXPECT_TRUE(one.whole);
  EXPECT_FALSE(one.read_only);
  const RegionRef two = tables.at(0, 8, 57);
  ASSERT_NE(two.region, nullptr);
  EXPECT_EQ(two.region->offset, 0u);
  EXPECT_FALSE(two.whole);
  EXPECT_TRUE(two.read_only);
}

TEST_F(RegionsOfAnotherNode, hold_no_range_with_a_gap_in_it) {
  EXPECT_EQ(tables.at(0, 100, 29).region, nullptr);
  EXPECT_EQ(tables.at(0, 128, 8).region, nullptr);
  EXPECT_EQ(tables.at(0, 320, 1).region, nullptr);
  EXPECT_NE(tables.at(0, 256, 64).region, nullptr);
}

TEST_F(RegionsOfAnotherNode, are_not_under_the_same_locks_where_one_of_them_is_not) {
  EXPECT_TRUE(tables.at(0, 512, 64).same_locks);
  EXPECT_FALSE(tables.at(0, 576, 8).same_locks);
  EXPECT_FALSE(tables.at(0, 568, 16).same_locks);
}

TEST_F(RegionsOfAnotherNode, hold_pieces_whatever_lies_between_them) {
  const std::array<std::int64_t, 2> offsets = {0, 256};
  const std::array<std::uint64_t, 2> lengths = {8, 8};
  std::vector<ops::Piece> pieces;
  for (std::size_t i = 0; i < offsets.size(); ++i) pieces.push_back({offsets[i], lengths[i]});
  Operation operation;
  operation.bytes = 16;
  operation.target_layout = ops::LayoutView::indexed(pieces);
  const RegionRef all = tables.of_pieces(operation, 0);
  ASSERT_NE(all.region, nullptr);
  EXPECT_FALSE(all.whole);
  EXPECT_FALSE(all.same_locks);
  operation.offset = 64;
  EXPECT_EQ(tables.of_pieces(operation, 0).region, nullptr);
}

}  // namespace
}  // namespace farsum
