// When a rank that locks all again and again offers that without a visit of each lock.
#include "window/offer_pace.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

std::uint32_t queued_until_offer(OfferPace& pace) {
  std::uint32_t count = 1;
  while (!pace.note_queued()) ++count;
  return count;
}

TEST(OfferPace, is_slower_with_each_offer_that_does_not_pay_up_to_a_limit) {
  OfferPace pace;
  std::uint32_t expected = OfferPace::shortest;
  for (int offer = 0; offer < 20; ++offer) {
    EXPECT_EQ(queued_until_offer(pace), expected);
    for (std::uint32_t held = 1; held < OfferPace::shortest; ++held) pace.note_held();
    expected = std::min(2 * expected, OfferPace::longest);
  }
}

TEST(OfferPace, is_fast_again_once_an_offer_has_paid) {
  OfferPace pace;
  for (int offer = 0; offer < 3; ++offer) (void)queued_until_offer(pace);
  for (std::uint32_t held = 0; held < OfferPace::shortest; ++held) pace.note_held();
  // The offer that paid is known to have done so when the next is made.
  EXPECT_EQ(queued_until_offer(pace), 8 * OfferPace::shortest);
  EXPECT_EQ(queued_until_offer(pace), OfferPace::shortest);
}

TEST(OfferPace, counts_what_was_queued_in_a_row) {
  OfferPace pace;
  for (std::uint32_t i = 1; i < OfferPace::shortest; ++i) EXPECT_FALSE(pace.note_queued());
  pace.note_held();
  EXPECT_EQ(queued_until_offer(pace), OfferPace::shortest);
}

}  // namespace
}  // namespace farsum
