// How much the copies of a process keep.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "read_ahead_parts.hpp"
#include "sim/seeds.hpp"

namespace farsum {
namespace {

class ReadCopiesTest : public testing::Test {
 protected:
  static constexpr std::uint64_t blocks = 2 * ReadCopies::most_known;

  std::unique_ptr<ReadAhead> make() {
    const std::uint64_t bytes = blocks * block_bytes;
    return std::make_unique<ReadAhead>(ReadAhead::Options{age_ns, &hearing_, &copies_, read_clock},
                                       std::vector<std::uint64_t>{bytes, bytes});
  }
  void touch(ReadAhead& ahead, std::uint32_t rank, std::uint64_t index) {
    std::byte result[8];
    Operation read;
    read.kind = OperationKind::get;
    read.offset = index * block_bytes;
    read.bytes = sizeof result;
    read.target_layout = read.result_layout = ops::LayoutView::contiguous(sizeof result);
    read.result = result;
    ahead.sent(rank, read);
    ahead.end_round(rank, [&](const Operation& block, Outstanding& fetches, RequestState& told) {
      fetches.count.fetch_add(1, std::memory_order_relaxed);
      under_way_.push_back({block, &fetches, &told});
      return true;
    });
  }
  void complete_one() {
    if (under_way_.empty()) return;
    end_fetch(under_way_.front(), Code::ok);
    under_way_.pop_front();
  }
  void complete() {
    while (!under_way_.empty()) complete_one();
  }
  void expect_bounds() {
    ASSERT_LE(copies_.blocks.load(), ReadCopies::most_blocks);
    ASSERT_LE(copies_.known.load(), ReadCopies::most_known);
    ASSERT_LE(copies_.blocks.load(), copies_.known.load());
  }

  Hearing hearing_;
  ReadCopies copies_;
  std::deque<Fetch> under_way_;
};

TEST_F(ReadCopiesTest, know_no_more_blocks_than_their_bound) {
  const auto ahead = make();
  for (std::uint64_t index = 0; index < blocks; ++index) {
    touch(*ahead, 0, index);
    expect_bounds();
  }
  EXPECT_GT(copies_.known.load(), 0u);
}

TEST_F(ReadCopiesTest, hold_no_more_blocks_than_their_bound_and_none_at_the_end) {
  {
    auto ahead = make();
    for (std::uint64_t index = 0; index < ReadCopies::most_blocks + 100; ++index) {
      for (int round = 0; round < 2; ++round) touch(*ahead, 0, index);
      complete();
      expect_bounds();
    }
    EXPECT_EQ(copies_.fetched.load(), ReadCopies::most_blocks);
  }
  EXPECT_EQ(copies_.blocks.load(), 0u);
  EXPECT_EQ(copies_.known.load(), 0u);
}

TEST_F(ReadCopiesTest, keep_what_is_under_way_when_they_are_full) {
  const auto ahead = make();
  for (std::uint64_t index = 0; index < ReadCopies::most_blocks + 100; ++index) {
    for (int round = 0; round < 2; ++round) touch(*ahead, 0, index);
    expect_bounds();
  }
  EXPECT_EQ(under_way_.size(), ReadCopies::most_blocks);
  hearing_.hear();
  for (int round = 0; round < 2; ++round) touch(*ahead, 0, blocks - 1);
  EXPECT_EQ(under_way_.size(), ReadCopies::most_blocks) << "a block that is under way was let go";
  complete();
}

TEST_F(ReadCopiesTest, let_go_what_was_read_before_the_last_hearing_for_the_sake_of_other_windows) {
  const auto idle = make(), busy = make();
  for (std::uint64_t index = 0; index < ReadCopies::most_blocks; ++index) {
    for (int round = 0; round < 2; ++round) touch(*idle, 0, index);
    complete();
  }
  for (int round = 0; round < 2; ++round) touch(*busy, 1, 7);
  EXPECT_TRUE(under_way_.empty());
  hearing_.hear();
  for (int round = 0; round < 2; ++round) touch(*busy, 1, 7);
  EXPECT_EQ(under_way_.size(), 1u);
  EXPECT_EQ(copies_.blocks.load(), 1u);
  complete();
}

TEST_F(ReadCopiesTest, keep_to_their_bounds_whatever_is_read) {
  for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    {
      const auto first = make(), second = make();
      for (int step = 0; step < 60'000; ++step) {
        ReadAhead& ahead = random() % 2 == 0 ? *first : *second;
        const std::uint64_t near = random() % 8'000, far = random() % blocks;
        touch(ahead, random() % 2, random() % 4 == 0 ? far : near);
        if (random() % 2 == 0) complete_one();
        if (random() % 10'000 == 0) hearing_.hear();
        expect_bounds();
        if (testing::Test::HasFatalFailure()) break;
      }
      complete();
    }
    EXPECT_EQ(copies_.blocks.load(), 0u);
    EXPECT_EQ(copies_.known.load(), 0u);
  });
}

}  // namespace
}  // namespace farsum
