// Which locks a thread waits for before it takes another: its own, until they are answered or forgotten.
#include "window/asked_locks.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "os/thread_mark.hpp"

namespace farsum {
namespace {

// Release, as whoever brings the answer.
void answer(RequestState& granted) { granted.done.store(true, std::memory_order_release); }

TEST(AskedLocks, are_awaited_until_they_are_answered) {
  AskedLocks asked;
  RequestState first, second;
  EXPECT_FALSE(asked.any());
  asked.add(first, 3);
  asked.add(second, 5);
  EXPECT_TRUE(asked.any());
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(3));
  answer(first);
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(5));
  answer(second);
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt);
  EXPECT_FALSE(asked.any());
}

TEST(AskedLocks, are_not_awaited_when_they_are_forgotten) {
  AskedLocks asked;
  RequestState given_back, left;
  asked.add(given_back, 1);
  asked.add(left, 2);
  asked.forget(given_back);
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(2));
  asked.forget(left);
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt);
  EXPECT_FALSE(asked.any());
}

// One that waits for another's lock might be what its holder waits for.
TEST(AskedLocks, of_other_threads_are_not_awaited) {
  AskedLocks asked;
  RequestState own, other;
  asked.add(own, 1);
  std::thread([&] {
    EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt);
    asked.add(other, 2);
    EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(2));
    answer(other);
    EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt);
  }).join();
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(1));
  // By whatever thread gives it back.
  std::thread([&] { asked.forget(own); }).join();
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt);
}

// Else no lock could be taken the short way while the other thread computes.
TEST(AskedLocks, of_other_threads_are_gone_once_they_are_answered) {
  AskedLocks asked;
  RequestState own;
  asked.add(own, 1);
  answer(own);
  std::thread([&] { EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt); }).join();
  EXPECT_FALSE(asked.any());
}

TEST(AskedLocks, are_not_answered_by_the_answer_to_the_time_before) {
  AskedLocks asked;
  RequestState own;
  asked.add(own, 1);
  answer(own);
  asked.forget(own);
  asked.add(own, 1);
  std::thread([&] { EXPECT_EQ(asked.awaited(os::thread_mark()), std::nullopt); }).join();
  EXPECT_EQ(asked.awaited(os::thread_mark()), std::optional<Rank>(1));
}

}  // namespace
}  // namespace farsum
