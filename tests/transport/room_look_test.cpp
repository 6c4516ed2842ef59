// When the system is asked again what room it has.
#include "transport/shm/room_look.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include "mib.hpp"

namespace farsum {
namespace {

using test::mib;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t start_ns = 5'000'000'000;
// Until half of 8 GiB could have been filled.
constexpr std::uint64_t lasts_ns = 8 * gib / 2 / RoomLook::most_filled_bytes_per_ns;
static_assert(lasts_ns < RoomLook::longest_ns);

// Found 8 GiB when 100 MiB had been promised.
class RoomLookTest : public ::testing::Test {
 protected:
  RoomLookTest() { look_.has_found(8 * gib, 100 * mib, start_ns); }
  RoomLook look_;
};

TEST_F(RoomLookTest, is_good_until_others_could_have_filled_half_of_what_it_found) {
  EXPECT_FALSE(look_.is_worth_repeating(50 * mib, 100 * mib, start_ns));
  EXPECT_FALSE(look_.is_worth_repeating(50 * mib, 100 * mib, start_ns + lasts_ns));
  EXPECT_TRUE(look_.is_worth_repeating(50 * mib, 100 * mib, start_ns + lasts_ns + 1));
}

TEST_F(RoomLookTest, is_good_the_shorter_the_less_it_found) {
  look_.has_found(512 * mib, 0, start_ns);
  EXPECT_FALSE(look_.is_worth_repeating(2 * mib, 0, start_ns + lasts_ns / 16));
  EXPECT_TRUE(look_.is_worth_repeating(2 * mib, 0, start_ns + lasts_ns / 16 + 1));
}

TEST_F(RoomLookTest, is_good_for_no_longer_however_much_it_found) {
  look_.has_found(1024 * gib, 0, start_ns);
  EXPECT_FALSE(look_.is_worth_repeating(2 * mib, 0, start_ns + RoomLook::longest_ns));
  EXPECT_TRUE(look_.is_worth_repeating(2 * mib, 0, start_ns + RoomLook::longest_ns + 1));
}

TEST_F(RoomLookTest, is_good_for_who_read_the_clock_before_it_was_made) {
  EXPECT_FALSE(look_.is_worth_repeating(50 * mib, 100 * mib, start_ns - 1));
}

TEST_F(RoomLookTest, is_repeated_for_more_than_a_share_of_what_it_found) {
  EXPECT_FALSE(look_.is_worth_repeating(64 * mib, 100 * mib, start_ns));
  EXPECT_TRUE(look_.is_worth_repeating(64 * mib + 1, 100 * mib, start_ns));
}

TEST_F(RoomLookTest, is_repeated_once_many_have_been_promised_such_a_share_together) {
  EXPECT_FALSE(look_.is_worth_repeating(8 * mib, 156 * mib, start_ns));
  EXPECT_TRUE(look_.is_worth_repeating(8 * mib, 156 * mib + 1, start_ns));
  look_.has_found(8 * gib, 156 * mib, start_ns);
  EXPECT_FALSE(look_.is_worth_repeating(8 * mib, 156 * mib + 1, start_ns));
}

TEST_F(RoomLookTest, is_not_repeated_for_what_is_promised_again_after_it_was_given_back) {
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t promised = i % 2 == 0 ? 20 * mib : 100 * mib;
    EXPECT_FALSE(look_.is_worth_repeating(50 * mib, promised, start_ns + 1000 * static_cast<std::uint64_t>(i)));
  }
}

TEST_F(RoomLookTest, is_never_repeated_for_little_one_by_one) {
  constexpr std::uint64_t much_later_ns = start_ns + 100 * lasts_ns;
  EXPECT_FALSE(look_.is_worth_repeating(mib, 107 * mib, much_later_ns));
  EXPECT_TRUE(look_.is_worth_repeating(mib, 107 * mib + 1, much_later_ns));
}

TEST(RoomLook, is_made_first_of_all) {
  const RoomLook none;
  EXPECT_TRUE(none.is_worth_repeating(2 * mib, 0, start_ns));
  EXPECT_FALSE(none.is_worth_repeating(mib, 0, start_ns));
  EXPECT_TRUE(none.is_worth_repeating(mib, 7 * mib + 1, start_ns));
}

}  // namespace
}  // namespace farsum
