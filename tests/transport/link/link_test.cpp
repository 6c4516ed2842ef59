// What a link promises over connections that lose, double, reorder and break, whatever the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "link_world.hpp"
#include "sim/seeds.hpp"
#include "test_length.hpp"

namespace farsum::link {
namespace {

WorldOptions both_ways(std::uint64_t seed) {
  WorldOptions options;
  options.seed = seed;
  options.links = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
  return options;
}

WorldOptions broken_often(std::uint64_t seed) {
  WorldOptions options = both_ways(seed);
  for (LinkPlan& plan : options.links) plan.waits = 20;
  return cut_often(options);
}

// Small requests, most of which travel in one frame with others.
WorldOptions many_small(std::uint64_t seed) {
  WorldOptions options = both_ways(seed);
  for (LinkPlan& plan : options.links) {
    plan.requests = 400;
    plan.waits = seed % 4;
    plan.most_message_bytes = 120;
    plan.most_reply_bytes = 16;
  }
  options.cuts = seed % 5;
  options.down_ns = seed % 2 * s;
  return options;
}

// Windows of a few records, so that credit is asked for all the time.
WorldOptions short_of_credit(std::uint64_t seed) {
  WorldOptions options = both_ways(seed);
  options.budget_bytes = 0;
  options.peers = 2000;
  options.most_window = 4096;
  options.may_wait_bytes = 4096;
  for (LinkPlan& plan : options.links) plan.most_message_bytes = 200;
  return options;
}

// More requests wait than half a window holds, for requests that are posted after them.
WorldOptions waits_fill_the_share(std::uint64_t seed) {
  WorldOptions options = both_ways(seed);
  options.most_window = 16384;
  options.may_wait_bytes = 8192;
  for (LinkPlan& plan : options.links) {
    plan.waits = 200;
    plan.requests = 220;
  }
  return options;
}

// Many share a budget of little more than one long request.
WorldOptions shared_by_many(std::uint64_t seed) {
  WorldOptions options;
  options.seed = seed;
  options.budget_bytes = 0;
  options.peers = 130;
  for (Rank origin = 1; origin <= 12; ++origin) {
    options.links.push_back(
        {.from = origin, .to = 0, .requests = 30, .most_message_bytes = 56000, .most_reply_bytes = 8000});
  }
  return options;
}

TEST(Link, answers_each_request_once_and_in_order) {
  for_each_seed(200, [](std::uint64_t seed) { EXPECT_EQ(LinkWorld(both_ways(seed)).run(), ""); });
}

// In full in make test-all: 600 seeds.
TEST(Link, answers_each_request_once_though_connections_break) {
  for_each_seed(test::in_full_or(600, 120),
                [](std::uint64_t seed) { EXPECT_EQ(LinkWorld(broken_often(seed)).run(), ""); });
}

TEST(Link, answers_each_small_request_that_was_held_once_and_in_order_though_connections_break) {
  std::uint64_t fewest_frames = ~std::uint64_t{0};
  for_each_seed(200, [&](std::uint64_t seed) {
    LinkWorld world(many_small(seed));
    EXPECT_EQ(world.run(), "");
    const LinkCounters& counters = world.links[0]->sender.counters();
    fewest_frames = std::min(fewest_frames, counters.sent[static_cast<std::size_t>(FrameKind::requests)].frames);
  });
  EXPECT_LT(fewest_frames, 300u) << "requests travel together";
}

TEST(Link, goes_on_with_windows_of_a_few_requests) {
  for_each_seed(200, [](std::uint64_t seed) {
    WorldOptions options = short_of_credit(seed);
    options.cuts = seed % 3;
    EXPECT_EQ(LinkWorld(options).run(), "");
  });
}

// In full in make test-all: 200 seeds.
TEST(Link, serves_what_releases_the_waiting_while_these_take_all_that_they_may) {
  for_each_seed(test::in_full_or(200, 40),
                [](std::uint64_t seed) { EXPECT_EQ(LinkWorld(waits_fill_the_share(seed)).run(), ""); });
}

// In full in make test-all: 60 seeds.
TEST(Link, carries_long_messages_with_every_queue_full_both_ways) {
  for_each_seed(test::in_full_or(60, 12), [](std::uint64_t seed) {
    WorldOptions options = both_ways(seed);
    options.frames_in_wire = 2;
    options.budget_bytes = 0;
    options.cuts = seed % 3;
    for (LinkPlan& plan : options.links) {
      plan.most_message_bytes = 56000;
      plan.most_reply_bytes = 56000;
    }
    EXPECT_EQ(LinkWorld(options).run(), "");
  });
}

// Together they ask for more than twenty times the budget.
// In make test-all: 4,096 origins.
TEST(Link, keeps_all_origins_of_a_target_within_its_budget_and_serves_each) {
  constexpr Rank origins = 4096 / seed_share;
  WorldOptions options;
  options.seed = 5;
  options.budget_bytes = std::uint64_t{2048} * origins;
  options.peers = origins;
  for (Rank origin = 1; origin <= origins; ++origin) {
    options.links.push_back({.from = origin, .to = 0, .requests = 2, .most_message_bytes = 56000});
  }
  LinkWorld world(options);
  EXPECT_EQ(world.run(), "");
  EXPECT_LE(world.peak_used, world.pools[0]->total());
  EXPECT_LE(world.pools[0]->total(), options.budget_bytes + 2 * CreditPool::turn_bytes);
}

// Peers that hold credit and do nothing with it must not starve the others.
TEST(Link, serves_an_origin_though_idle_ones_hold_the_credit) {
  for_each_seed(20, [](std::uint64_t seed) {
    LinkWorld world(shared_by_many(seed));
    for (std::size_t i = 0; i + 1 < world.links.size(); ++i) {
      world.at(2 * ms, [&world, i] { world.links[i]->program_stops = true; });
    }
    EXPECT_EQ(world.run(), "");
    EXPECT_LE(world.peak_used, world.pools[0]->total());
  });
}

// A ping's answer mends whatever was not told, seconds later, and would hide it from the tests above.
// In make test-all: four kinds of traffic, 50 seeds each.
TEST(Link, needs_no_ping_where_nothing_is_lost) {
  for (const auto make : {both_ways, short_of_credit, waits_fill_the_share, shared_by_many}) {
    for_each_seed(50, [&](std::uint64_t seed) {
      LinkWorld world(make(seed));
      EXPECT_EQ(world.run(), "");
      for (const auto& link : world.links)
        EXPECT_EQ(link->sender.counters().sent[static_cast<std::size_t>(FrameKind::ping)].frames, 0U);
    });
  }
}

// ---- the checks above would notice

struct NoticedOmission {
  const char* name;
  WorldOptions (*make)(std::uint64_t seed);
  Omission omission;
};

class LinkChecks : public testing::TestWithParam<NoticedOmission> {};

TEST_P(LinkChecks, notice) {
  bool is_noticed = false;
  for (std::uint64_t seed = 1; seed <= 80 && !is_noticed; ++seed) {
    WorldOptions options = GetParam().make(seed);
    options.omission = GetParam().omission;
    options.timeout_ns = 0;
    is_noticed = !LinkWorld(options).run().empty();
  }
  EXPECT_TRUE(is_noticed);
}

INSTANTIATE_TEST_SUITE_P(
    That, LinkChecks,
    testing::Values(
        NoticedOmission{"requests_are_forgotten_before_they_were_received", broken_often,
                        Omission::keep_until_received},
        NoticedOmission{"replies_are_forgotten_before_they_were_taken", broken_often, Omission::keep_reply_until_seen},
        NoticedOmission{"taken_replies_are_told_with_requests_only", short_of_credit, Omission::bare_acks},
        NoticedOmission{"requests_which_wait_take_all_credit", waits_fill_the_share, Omission::may_wait_share},
        NoticedOmission{"frames_of_old_connections_are_obeyed", broken_often, Omission::epoch_check},
        NoticedOmission{"credit_is_given_back_while_its_reply_is_kept", both_ways, Omission::hold_credit_of_replies},
        NoticedOmission{"memory_is_given_back_while_the_wire_reads_it", both_ways, Omission::wait_for_sent},
        NoticedOmission{"a_double_is_executed", both_ways, Omission::doubles_check}),
    [](const auto& noticed) { return std::string(noticed.param.name); });

}  // namespace
}  // namespace farsum::link
