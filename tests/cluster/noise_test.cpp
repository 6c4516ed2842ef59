#include "cluster/noise.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace farsum::cluster {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

std::vector<Interval> runs_until(Daemon daemon, std::int64_t end) {
  std::vector<Interval> runs;
  for (Interval run = daemon.first_after(0); run.begin_ns < end; run = daemon.first_after(run.end_ns)) {
    runs.push_back(run);
  }
  return runs;
}

// How much of a stretch of time one daemon has, or both of two have at once.
std::int64_t lost_between(std::int64_t begin, std::int64_t end, const std::vector<Interval>& runs) {
  std::int64_t lost = 0;
  for (const Interval& run : runs) {
    lost += std::max<std::int64_t>(0, std::min(end, run.end_ns) - std::max(begin, run.begin_ns));
  }
  return lost;
}

std::vector<Interval> both(const std::vector<Interval>& some, const std::vector<Interval>& others) {
  std::vector<Interval> overlaps;
  for (const Interval& a : some) {
    for (const Interval& b : others) {
      const Interval overlap{std::max(a.begin_ns, b.begin_ns), std::min(a.end_ns, b.end_ns)};
      if (overlap.begin_ns < overlap.end_ns) overlaps.push_back(overlap);
    }
  }
  return overlaps;
}

// Works of different lengths, back to back and with pauses: each ends once it has had its length, and not before.
void expect_work_to_be_conserved(Processor processor, const std::vector<Interval>& lost) {
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 1'000; ++i) {
    const std::int64_t start = now + i % 5 * 700;
    const std::int64_t length = i * 7919 % 20'000;
    const std::int64_t end = processor.work(start, length);
    ASSERT_EQ(end - start - lost_between(start, end, lost), length) << "work " << i << " from " << start;
    ASSERT_EQ(lost_between(end - 1, end, lost), 0) << "work " << i << " ends where a daemon runs";
    now = end;
  }
}

TEST(ADaemon, has_its_share_of_the_processor_over_long_times) {
  for (const double load : {0.001, 0.1, 0.6}) {
    const Daemon daemon({.load = load, .length_ns = 100'000}, 7);
    const std::int64_t end = 1'000 * static_cast<std::int64_t>(100'000 / load);
    const std::int64_t lost = lost_between(0, end, runs_until(daemon, end));
    EXPECT_NEAR(static_cast<double>(lost) / static_cast<double>(end), load, load * 0.1);
  }
}

TEST(ADaemon, runs_at_the_same_times_with_the_same_key_and_at_others_with_another) {
  const Noise noise{.load = 0.01};
  const auto one = runs_until(Daemon(noise, 1), second_ns);
  const auto again = runs_until(Daemon(noise, 1), second_ns);
  const auto other = runs_until(Daemon(noise, 2), second_ns);
  ASSERT_FALSE(one.empty());
  ASSERT_FALSE(other.empty());
  ASSERT_EQ(one.size(), again.size());
  EXPECT_EQ(one.front().begin_ns, again.front().begin_ns);
  EXPECT_EQ(one.back().begin_ns, again.back().begin_ns);
  EXPECT_NE(one.front().begin_ns, other.front().begin_ns);
}

TEST(ADaemon, never_runs_without_load) {
  Daemon daemon({}, 1);
  EXPECT_EQ(daemon.first_after(second_ns).begin_ns, never_ns);
}

TEST(AProcessor, does_as_much_work_as_the_daemon_leaves_it_time_for) {
  const Daemon daemon({.load = 0.3, .length_ns = 10'000}, 3);
  expect_work_to_be_conserved(Processor(daemon), runs_until(daemon, second_ns / 10));
}

TEST(AProcessor, is_lost_only_while_the_daemon_of_the_idle_one_runs_too) {
  const Daemon own({.load = 0.3, .length_ns = 10'000}, 3);
  const Daemon of_idle_one({.load = 0.2, .length_ns = 15'000}, 4);
  const std::int64_t end = second_ns / 10;
  expect_work_to_be_conserved(Processor(own, of_idle_one), both(runs_until(own, end), runs_until(of_idle_one, end)));
}

TEST(AProcessor, without_a_daemon_is_quiet_for_ever) {
  Processor processor;
  EXPECT_EQ(processor.quiet_until(second_ns), never_ns);
  EXPECT_EQ(processor.work(second_ns, 5), second_ns + 5);
}

TEST(AProcessor, does_one_work_after_the_other) {
  Processor processor;
  EXPECT_EQ(processor.work(100, 50), 150);
  EXPECT_EQ(processor.work(120, 10), 160);
  EXPECT_EQ(processor.work(200, 0), 200);
}

}  // namespace
}  // namespace farsum::cluster
