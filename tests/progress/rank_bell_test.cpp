// What ends an agent's sleep, with and without a network. Every sleep here that has no time is ended by what the test
// does, or the test hangs.
#include "progress/rank_bell.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "fake_network.hpp"

namespace farsum::test {
namespace {

// Over before anything can happen.
constexpr std::uint64_t a_moment_ns = 1;

struct Bell {
  Doorbell doorbell{};
  os::WakeName name = new_name();
  RankBell bell{doorbell, name};
  os::WakeSender sender;

  bool ring(std::uint32_t from) {
    return doorbell.ring(from, [&] { sender.wake(name); });
  }
};

struct Networked : Bell {
  FakeNetwork network;
  Networked() { EXPECT_TRUE(bell.add_network(network).is_ok()); }
};

void expect_to_sleep_until_it_is_rung(Bell& rank) {
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
  rank.ring(5);
  EXPECT_TRUE(rank.bell.sleep(0));
  rank.doorbell.collect([](std::uint32_t) {});
  std::thread other([&] { rank.ring(5); });
  EXPECT_TRUE(rank.bell.sleep(0));
  other.join();
}

TEST(RankBell, without_a_network_sleeps_until_it_is_rung) {
  Bell rank;
  expect_to_sleep_until_it_is_rung(rank);
}

TEST(RankBell, with_a_network_sleeps_until_it_is_rung) {
  Networked rank;
  expect_to_sleep_until_it_is_rung(rank);
}

TEST(RankBell, with_a_network_sleeps_until_a_request_comes) {
  Networked rank;
  std::thread other([&] { rank.network.bring_request(); });
  EXPECT_TRUE(rank.bell.sleep(0));
  other.join();
  rank.network.take_requests();
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
}

TEST(RankBell, does_not_sleep_on_a_network_that_cannot_be_armed) {
  Networked rank;
  rank.network.has_requests = true;
  EXPECT_TRUE(rank.bell.sleep(0));
}

TEST(RankBell, sleeps_on_a_network_that_is_added_while_it_sleeps_without) {
  Bell rank;
  FakeNetwork network;
  std::thread agent([&] {
    EXPECT_TRUE(rank.bell.sleep(0));
    EXPECT_TRUE(rank.bell.sleep(0));
  });
  EXPECT_TRUE(rank.bell.add_network(network).is_ok());
  network.bring_request();
  agent.join();
}

TEST(RankBell, looks_once_at_a_network_that_has_more_to_sleep_on) {
  Networked rank;
  EXPECT_FALSE(rank.bell.watch_has_ended());
  EXPECT_TRUE(rank.bell.add_network(rank.network).is_ok());
  EXPECT_TRUE(rank.bell.sleep(0));
  EXPECT_TRUE(rank.bell.watch_has_ended());
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
}

TEST(RankBell, says_why_it_cannot_sleep_on_a_network_and_goes_on_without) {
  Bell rank;
  FakeNetwork network;
  Result<os::WakeSocket> taken = os::WakeSocket::open(rank.name);
  ASSERT_TRUE(taken.is_ok());
  EXPECT_EQ(rank.bell.add_network(network).code(), Code::system);
  network.bring_request();
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
}

TEST(RankBell, sleeps_through_replies_that_nobody_asked_to_watch) {
  Networked rank;
  rank.network.bring_reply();
  rank.network.has_replies = true;
  rank.network.deadline_ns = 0;
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
  EXPECT_FALSE(rank.bell.watch_has_ended());
}

TEST(RankBell, ends_a_watch_with_the_first_reply) {
  Networked rank;
  rank.bell.watch_replies();
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
  EXPECT_FALSE(rank.bell.watch_has_ended());
  rank.network.bring_reply();
  EXPECT_TRUE(rank.bell.sleep(0));
  EXPECT_TRUE(rank.bell.watch_has_ended());
  EXPECT_FALSE(rank.bell.watch_has_ended());
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns));
}

TEST(RankBell, ends_a_watch_on_replies_that_are_there_already) {
  Networked rank;
  rank.network.has_replies = true;
  rank.bell.watch_replies();
  EXPECT_TRUE(rank.bell.sleep(0));
  EXPECT_TRUE(rank.bell.watch_has_ended());
}

TEST(RankBell, ends_a_watch_when_the_networks_deadline_has_come) {
  Networked rank;
  rank.network.deadline_ns = 0;
  rank.bell.watch_replies();
  EXPECT_TRUE(rank.bell.sleep(0));
  EXPECT_TRUE(rank.bell.watch_has_ended());
}

TEST(RankBell, watches_when_asked_while_it_sleeps) {
  Networked rank;
  rank.network.bring_reply();
  std::thread agent([&] {
    while (!rank.bell.watch_has_ended()) EXPECT_TRUE(rank.bell.sleep(0));
  });
  rank.bell.watch_replies();
  agent.join();
}

TEST(RankBell, looks_at_once_when_asked_though_no_reply_comes) {
  Networked rank;
  rank.bell.watch_replies();
  rank.bell.ask_for_look();
  EXPECT_TRUE(rank.bell.sleep(0));
  EXPECT_TRUE(rank.bell.watch_has_ended());
  EXPECT_FALSE(rank.bell.watch_has_ended());
  EXPECT_FALSE(rank.bell.sleep(a_moment_ns)) << "one look for each time that it was asked for";
}

TEST(RankBell, looks_when_asked_while_it_watches_asleep) {
  Networked rank;
  rank.bell.watch_replies();
  std::thread agent([&] {
    while (!rank.bell.watch_has_ended()) EXPECT_TRUE(rank.bell.sleep(0));
  });
  rank.bell.ask_for_look();
  agent.join();
}

TEST(RankBell, of_an_agent_that_never_sleeps_ends_a_watch_at_once) {
  Networked rank;
  rank.bell.pass();
  EXPECT_FALSE(rank.bell.watch_has_ended());
  rank.bell.watch_replies();
  rank.bell.pass();
  EXPECT_TRUE(rank.bell.watch_has_ended());
}

TEST(RankBell, without_a_network_watches_nothing) {
  Bell rank;
  rank.bell.watch_replies();
  rank.bell.pass();
  EXPECT_FALSE(rank.bell.watch_has_ended());
}

TEST(RankBell, that_is_woken_never_sleeps_again) {
  Networked rank;
  std::thread agent([&] {
    while (!rank.bell.stopped()) EXPECT_TRUE(rank.bell.sleep(0));
    EXPECT_TRUE(rank.bell.sleep(0));
  });
  rank.bell.wake();
  agent.join();
}

// Ringers, a network that comes meanwhile, its requests and its replies at once: each round waits for the agent.
TEST(RankBell, loses_nothing_of_what_comes_at_once) {
  constexpr std::uint32_t ringers = 2;
  constexpr std::uint32_t rounds = 2000;
  Bell rank;
  FakeNetwork network;
  struct Side {
    std::atomic<std::uint32_t> asked{0};
    std::atomic<std::uint32_t> answered{0};
    void answer() {
      answered = asked.load();
      answered.notify_all();
    }
    void await(std::uint32_t round) {
      for (std::uint32_t seen = answered; seen < round; seen = answered) answered.wait(seen);
    }
  };
  std::array<Side, ringers> rung;
  Side requests;
  Side replies;

  std::thread agent([&] {
    while (!rank.bell.stopped()) {
      rank.doorbell.collect([&](std::uint32_t from) { rung[from].answer(); });
      network.take_requests();
      requests.answer();
      if (rank.bell.watch_has_ended()) {
        network.take_replies();
        replies.answer();
      }
      rank.bell.sleep(0);
    }
  });
  std::vector<std::thread> others;
  for (std::uint32_t from = 0; from < ringers; ++from) {
    others.emplace_back([&, from] {
      for (std::uint32_t round = 1; round <= rounds; ++round) {
        rung[from].asked = round;
        rank.ring(from);
        rung[from].await(round);
      }
    });
  }
  ASSERT_TRUE(rank.bell.add_network(network).is_ok());
  others.emplace_back([&] {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      requests.asked = round;
      network.bring_request();
      requests.await(round);
    }
  });
  others.emplace_back([&] {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      replies.asked = round;
      network.bring_reply();
      if (round % 2 == 0) {
        rank.bell.watch_replies();
      } else {
        rank.bell.ask_for_look();
      }
      replies.await(round);
    }
  });
  for (std::thread& other : others) other.join();
  rank.bell.wake();
  agent.join();
}

}  // namespace
}  // namespace farsum::test
