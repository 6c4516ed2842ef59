// The parts of gups that need no job: HPCC's generator, the dealing out, the bound on looking ahead.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "../../apps/gups/look_ahead.hpp"
#include "../../apps/gups/random_stream.hpp"
#include "../../apps/gups/split.hpp"

namespace gups {
namespace {

TEST(RandomStream, starts_as_hpcc_does) {
  EXPECT_EQ(random_at(0), 1u);
  EXPECT_EQ(random_at(1), 2u);
  EXPECT_EQ(random_at(63), std::uint64_t{1} << 63);
  EXPECT_EQ(random_at(64), 7u);
}

TEST(RandomStream, jumps_to_where_single_steps_lead) {
  std::uint64_t x = 1;
  for (std::uint64_t n = 0; n < 5000; ++n) {
    ASSERT_EQ(random_at(n), x) << n;
    x = next_random(x);
  }
}

TEST(RandomStream, goes_on_from_any_jump_as_from_a_step) {
  for (std::uint64_t n = 1; n < (std::uint64_t{1} << 60); n *= 3) {
    EXPECT_EQ(next_random(random_at(n)), random_at(n + 1)) << n;
  }
}

TEST(RandomStream, repeats_after_its_period) { EXPECT_EQ(random_at(1317624576693539401u), random_at(0)); }

TEST(Split, deals_everything_out_in_consecutive_parts) {
  for (const std::uint64_t total : {1u, 16u, 17u, 1000u, 4096u}) {
    for (const int ranks : {1, 2, 3, 4, 7, 16}) {
      const Split split(total, ranks);
      std::uint64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(split.first(rank), next) << total << " over " << ranks;
        next += split.count(rank);
      }
      EXPECT_EQ(next, total) << total << " over " << ranks;
    }
  }
}

TEST(Split, locates_every_word_in_the_part_that_holds_it) {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    const Split split(64, ranks);
    for (std::uint64_t word = 0; word < 64; ++word) {
      const Location at = split.locate(word);
      EXPECT_EQ(split.first(at.rank) + at.offset / 8, word) << ranks << " ranks";
      EXPECT_LT(at.offset / 8, split.count(at.rank)) << ranks << " ranks";
    }
  }
}

TEST(LookAhead, remembers_the_most_that_were_pending_at_once) {
  LookAhead look_ahead;
  look_ahead.generated(3);
  look_ahead.generated(4);
  look_ahead.completed(7);
  look_ahead.generated(2);
  EXPECT_EQ(look_ahead.high_water(), 7u);
}

TEST(LookAhead, stops_the_program_past_1024_updates) {
  LookAhead look_ahead;
  look_ahead.generated(1024);
  EXPECT_THROW(look_ahead.generated(1), std::logic_error);
}

}  // namespace
}  // namespace gups
