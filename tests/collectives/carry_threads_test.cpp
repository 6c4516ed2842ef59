// Collectives that nobody waits for: who wakes whom, and threads and agents that come to one call at once.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "carrying_threads.hpp"

namespace farsum {
namespace {

TEST(Carry, has_the_first_rank_walk_with_what_another_has_folded) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    CarriedBytes result(mine.size());
    std::shared_ptr<CarriedRequest> request;
    for (const std::uint32_t rank : {0, 2, 1}) {
      if (member.rank == rank) request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
      member.meeting.arrive_and_wait();
    }
    if (member.rank != 0) {
      EXPECT_TRUE(member.wait(*request).is_ok());
    }
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*request).is_ok());
    }
  });
}

// The fifth call of rank 1 finds the place of the first taken, from which rank 0 goes last.
TEST(Carry, has_calls_enter_a_place_that_another_rank_has_closed) {
  CarryingThreads threads({0, 0});
  threads.run([](CarryingMember member) {
    member.agent.set_away(member.rank == 0);
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<CarriedBytes> results(CarriedPlace::most_under_way + 1, CarriedBytes(mine.size()));
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    const auto begin = [&](CarriedBytes& result) {
      requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    };
    for (std::uint64_t i = 0; i < CarriedPlace::most_under_way; ++i) begin(results[i]);
    member.meeting.arrive_and_wait();
    if (member.rank == 1) begin(results.back());
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*requests.front()).is_ok());
      begin(results.back());
      EXPECT_TRUE(member.wait(*requests.back()).is_ok());
    }
    member.meeting.arrive_and_wait();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (member.rank == 0 && (i == 0 || i + 1 == requests.size())) continue;
      EXPECT_TRUE(member.wait(*requests[i]).is_ok());
    }
  });
}

TEST(Carry, lets_several_threads_of_a_rank_wait_at_once) {
  CarryingThreads threads({0, 1, 0, 1});
  threads.run([](CarryingMember member) {
    constexpr std::size_t count = 12;
    std::vector<CarriedBytes> results(count, CarriedBytes(3 * sizeof(double)));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<std::thread> waiting;
    for (std::size_t i = 0; i < count; ++i) {
      auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), results[i].data());
      waiting.emplace_back([&member, request] { EXPECT_TRUE(member.wait(*request).is_ok()); });
    }
    for (std::thread& thread : waiting) thread.join();
    for (const CarriedBytes& result : results) EXPECT_EQ(result, results.front());
  });
}

// The look that ends the first call enters the fifth, to which the other node has come already.
TEST(Carry, walks_with_what_the_look_that_ends_another_call_has_entered) {
  CarryingThreads threads({0, 1});
  threads.run([](CarryingMember member) {
    member.agent.set_away(true);
    member.meeting.arrive_and_wait();
    constexpr std::size_t count = 2 * CarriedPlace::most_under_way + 1;
    std::vector<CarriedBytes> results(count, CarriedBytes(3 * sizeof(double)));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    const auto begin_all = [&] {
      for (CarriedBytes& result : results)
        requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    };
    if (member.rank == 0) begin_all();
    member.meeting.arrive_and_wait();
    if (member.rank == 1) begin_all();
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*requests.front()).is_ok());
      // The fifth is over, too, and has made room for the ninth.
      EXPECT_EQ(member.help.under_way, 4);
    }
    member.meeting.arrive_and_wait();
    member.agent.set_away(false);
    for (std::size_t i = member.rank == 0 ? 1 : 0; i < count; ++i) {
      EXPECT_TRUE(member.wait(*requests[i]).is_ok());
    }
  });
}

TEST(Carry, completes_a_request_for_one_of_two_threads_that_test_it) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    for (int round = 0; round < 20; ++round) {
      CarriedBytes result(mine.size());
      const auto request = member.begin(carried_call_of(3, 5'000, 0), mine.data(), result.data());
      std::atomic<int> completed{0}, refused{0};
      const auto look_on = [&] {
        for (;;) {
          bool is_over = false;
          const Status status = member.carry.wait(*request, is_over, "wait");
          if (is_over) return void(++completed);
          if (status.code() == Code::handle) return void(++refused);
        }
      };
      std::thread other(look_on);
      look_on();
      other.join();
      EXPECT_EQ(completed, 1);
      EXPECT_EQ(refused, 1);
      EXPECT_EQ(member.carry.open_requests(), 0);
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, holds_up_no_other_thread_while_it_begins_to_fold) {
  CarryingThreads threads({0, 0});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes early(3 * sizeof(double)), result(mine.size());
    const auto first = member.begin(carried_call_of(3, 3, 0), mine.data(), early.data());
    member.meeting.arrive_and_wait();
    std::shared_ptr<CarriedRequest> second;
    const auto begin = [&] { second = member.begin(carried_call_of(3, 5'000, 0), mine.data(), result.data()); };
    if (member.rank == 0) begin();
    member.meeting.arrive_and_wait();
    if (member.rank == 1) {
      std::latch folds(1), may_go_on(1);
      int reached = 0;
      // First it is what this rank itself brings.
      member.help.when_reaching = [&] {
        if (++reached != 2) return;
        folds.count_down();
        may_go_on.wait();
      };
      std::thread folding(begin);
      folds.wait();
      EXPECT_TRUE(member.wait(*first).is_ok());
      EXPECT_FALSE(member.carry.take_turn(Carry::Folding::done).is_unfinished);
      may_go_on.count_down();
      folding.join();
      member.help.when_reaching = nullptr;
    } else {
      EXPECT_TRUE(member.wait(*first).is_ok());
    }
    EXPECT_TRUE(member.wait(*second).is_ok());
  });
}

TEST(Carry, rings_the_agent_that_has_found_a_thread_in_its_way) {
  CarryingThreads threads({0});
  threads.run([](CarryingMember member) {
    Carry::Turn turn;
    member.help.when_counting = [&] {
      std::thread([&] { turn = member.carry.take_turn(Carry::Folding::done); }).join();
    };
    CarriedBytes result(3 * sizeof(double));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    const auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
    EXPECT_FALSE(turn.is_unfinished);
    EXPECT_EQ(member.help.rung, 1);
    member.help.when_counting = nullptr;
    EXPECT_TRUE(member.wait(*request).is_ok());
  });
}

TEST(Carry, does_not_leave_in_the_middle_what_a_cancelled_thread_has_begun) {
  CarryingThreads threads({0});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    CarriedBytes result(mine.size());
    member.help.when_counting = [] { pthread_testcancel(); };
    bool is_over = false;
    std::thread cancelled([&] {
      pthread_cancel(pthread_self());
      const auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
      (void)member.carry.test(*request, is_over, "test");
    });
    cancelled.join();
    EXPECT_TRUE(is_over);
    EXPECT_EQ(result, mine);
    member.help.when_counting = nullptr;
  });
}

}  // namespace
}  // namespace farsum
