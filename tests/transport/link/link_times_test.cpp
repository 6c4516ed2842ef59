// The clock of a link, without a link.
#include "transport/link/link_times.hpp"

#include <gtest/gtest.h>

namespace farsum::link {
namespace {

class Times : public testing::Test {
 protected:
  static constexpr std::uint64_t s = 1'000'000'000, ms = 1'000'000;

  void need_requests(std::uint64_t now_ns) { times.note_need(true, false, now_ns); }
  void need_receipts(std::uint64_t now_ns) { times.note_need(true, true, now_ns); }

  LinkTimes times{LinkPeriods()};
};

TEST_F(Times, count_the_silence_from_when_it_matters) {
  EXPECT_FALSE(times.is_needed());
  times.on_heard(1 * s);
  need_requests(50 * s);
  EXPECT_TRUE(times.is_needed());
  EXPECT_TRUE(times.does_silence_count());
  EXPECT_FALSE(times.is_silent(80 * s - 1));
  EXPECT_TRUE(times.is_silent(80 * s));
  times.on_heard(60 * s);
  EXPECT_FALSE(times.is_silent(90 * s - 1));
  times.note_need(false, false, 61 * s);
  EXPECT_FALSE(times.is_needed());
}

TEST_F(Times, have_no_timeout_where_none_is_set) {
  LinkPeriods periods;
  periods.timeout_ns = 0;
  LinkTimes patient(periods);
  patient.note_need(true, false, 0);
  EXPECT_FALSE(patient.is_silent(1'000'000 * s));
  EXPECT_EQ(patient.deadline_ns(LinkState::broken, true), never);
}

TEST_F(Times, do_not_count_a_silence_about_receipts_until_somebody_waits_for_them) {
  need_receipts(0);
  EXPECT_FALSE(times.does_silence_count());
  EXPECT_TRUE(times.expect_receipts(10 * s));
  need_receipts(10 * s);
  EXPECT_TRUE(times.does_silence_count());
  EXPECT_FALSE(times.is_silent(40 * s - 1)) << "from when it first matters";
  EXPECT_FALSE(times.expect_receipts(20 * s)) << "somebody did";
  EXPECT_FALSE(times.lapse(35 * s - 1));
  EXPECT_TRUE(times.lapse(35 * s)) << "half of the timeout";
  need_receipts(35 * s);
  EXPECT_FALSE(times.does_silence_count());
}

TEST_F(Times, count_the_silence_behind_a_connection_that_was_cut_until_something_is_heard) {
  times.on_cut_off();
  need_receipts(5 * s);
  EXPECT_TRUE(times.does_silence_count());
  times.on_heard(6 * s);
  need_receipts(6 * s);
  EXPECT_FALSE(times.does_silence_count());
}

TEST_F(Times, of_an_open_link_are_a_ping_then_a_new_connection_then_the_end) {
  times.on_connecting(0);
  need_requests(0);
  EXPECT_EQ(times.deadline_ns(LinkState::open, true), 5 * s);
  EXPECT_TRUE(times.is_ping_due(5 * s));
  times.on_asked(5 * s);
  EXPECT_TRUE(times.awaits_pong());
  EXPECT_FALSE(times.is_ping_due(5 * s));
  EXPECT_EQ(times.deadline_ns(LinkState::open, true), 10 * s);
  EXPECT_FALSE(times.is_stuck(10 * s - 1));
  EXPECT_TRUE(times.is_stuck(10 * s));
  times.on_answered();
  EXPECT_FALSE(times.awaits_pong());
}

TEST_F(Times, of_a_connection_that_is_being_made_know_no_ping) {
  times.on_connecting(2 * s);
  need_requests(0);
  EXPECT_EQ(times.deadline_ns(LinkState::connecting, true), 12 * s);
}

TEST_F(Times, of_a_broken_link_are_the_next_attempt_once_the_old_connection_is_gone) {
  need_requests(0);
  times.on_broken(1 * s);
  EXPECT_EQ(times.deadline_ns(LinkState::broken, true), 30 * s);
  EXPECT_EQ(times.deadline_ns(LinkState::broken, false), 1 * s + 10 * ms);
  EXPECT_FALSE(times.may_retry(1 * s));
  EXPECT_TRUE(times.may_retry(1 * s + 10 * ms));
  times.retry_at(1 * s);
  EXPECT_TRUE(times.may_retry(1 * s));
}

TEST_F(Times, between_attempts_grow_to_the_most_and_are_short_again_once_a_link_was_open) {
  need_requests(0);
  std::uint64_t waited = 10 * ms;
  for (int attempt = 0; attempt < 10; ++attempt, waited = std::min(2 * waited, 1 * s)) {
    times.on_broken(0);
    EXPECT_EQ(times.deadline_ns(LinkState::broken, false), waited);
  }
  times.on_open();
  times.on_broken(0);
  EXPECT_EQ(times.deadline_ns(LinkState::broken, false), 10 * ms);
}

TEST_F(Times, are_counted_anew_from_a_question) {
  need_receipts(0);
  times.count_anew(40 * s);
  EXPECT_FALSE(times.is_silent(70 * s - 1));
  EXPECT_TRUE(times.is_silent(70 * s));
  times.forget_need();
  EXPECT_FALSE(times.is_needed());
}

}  // namespace
}  // namespace farsum::link
