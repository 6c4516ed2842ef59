// What a window reads of the others' tables when it is made, and what only when it is asked for.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "window/window.hpp"

namespace farsum {
namespace {

constexpr std::uint32_t stranger = 1000;

// Whoever finds a lock held gives it up, so that a test tells what else would wait for ever.
class AllDead final : public Liveness {
 public:
  bool is_dead(std::uint32_t) const override { return true; }
  std::uint32_t declare_dead(std::uint32_t rank) const override { return rank; }
};

// The first of so many ranks of a node, each of which exposes one region.
class OneOfMany {
 public:
  OneOfMany(std::uint32_t ranks, bool dynamic) : shape_{ranks, 0, 1}, ranks_(ranks) {
    block_.resize((ranks * shape_.rank_bytes() + alignof(SharedLockState)) / sizeof(std::uint64_t));
    auto* const begin = reinterpret_cast<std::byte*>(
        round_up(reinterpret_cast<std::uintptr_t>(block_.data()), std::uint64_t{alignof(SharedLockState)}));
    Window::Parts parts;
    parts.dynamic = dynamic;
    parts.shape = shape_;
    parts.lock_agent.id = 1;
    parts.lock_agent.liveness = &liveness_;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const RankWindow& shared = parts.shared.emplace_back(begin + rank * shape_.rank_bytes(), shape_);
      shared.regions()->bytes = sizeof memory_;
      shared.head().region_count = 1;
      parts.ranks.push_back(rank);
      parts.sizes.push_back(dynamic ? 0 : sizeof memory_);
    }
    parts.make_region = [this](Rank, const SharedRegion& shared) {
      ++regions_made;
      Region region;
      region.bytes = shared.bytes;
      region.mapped = memory_;
      region.bulk = region.atomic = Path::direct;
      return region;
    };
    parts.explain_region = [this](std::uint32_t target, const Region&) {
      ++reasons_made;
      return "rank " + std::to_string(target);
    };
    window = std::make_unique<Window>(std::move(parts));
  }

  void hold_every_table() {
    for (const RankWindow& shared : window->parts().shared) EXPECT_TRUE(shared.head().table_lock.try_acquire(stranger));
  }
  std::uint32_t ranks() const { return ranks_; }

  std::unique_ptr<Window> window;
  std::uint32_t regions_made = 0;
  std::uint32_t reasons_made = 0;

 private:
  WindowSharedShape shape_;
  std::uint32_t ranks_;
  std::vector<std::uint64_t> block_;
  AllDead liveness_;
  std::byte memory_[64] = {};
};

class RegionsOfMany : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RegionsOfMany, testing::Values(2, 4, 16), testing::PrintToStringParamName());

TEST_P(RegionsOfMany, are_read_without_a_lock_where_they_stay_as_they_are) {
  OneOfMany job(GetParam(), false);
  job.hold_every_table();
  job.window->refresh_views();
  EXPECT_EQ(job.regions_made, job.ranks());
  for (std::uint32_t target = 0; target < job.ranks(); ++target)
    EXPECT_EQ(job.window->regions_of(target).size(), 1U) << "target " << target;
  EXPECT_EQ(job.regions_made, job.ranks());
}

TEST_P(RegionsOfMany, that_may_change_are_read_by_whoever_needs_them_first) {
  OneOfMany job(GetParam(), true);
  job.window->refresh_views();
  EXPECT_EQ(job.regions_made, 0U);
  EXPECT_EQ(job.window->regions_of(1).size(), 1U);
  EXPECT_EQ(job.regions_made, 1U);
}

TEST_P(RegionsOfMany, are_explained_to_those_who_ask) {
  OneOfMany job(GetParam(), false);
  job.window->refresh_views();
  EXPECT_EQ(job.reasons_made, 0U);
  EXPECT_EQ(job.window->regions_of(1).front().reason, "rank 1");
  EXPECT_EQ(job.reasons_made, 1U);
}

}  // namespace
}  // namespace farsum
