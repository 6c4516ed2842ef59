// ReplyCare by its table of transitions: every state, with and without something left behind and undelivered replies.
#include "transport/link/reply_care.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace farsum::link {
namespace {

using State = ReplyCare::State;
using Action = ReplyCare::Action;
using UnderWay = ReplyCare::UnderWay;
using Threads = ReplyCare::Threads;

constexpr std::uint64_t now = 1'000'000'000, ms = 1'000'000;
constexpr State all_states[] = {State::none, State::called, State::threads_until, State::agent_for_absent,
                                State::agent_for_sleepers};

bool has_agent(State state) { return state == State::agent_for_absent || state == State::agent_for_sleepers; }

// What was told before `state` is as unlike as may be to what will be told.
ReplyCare care_in(State state, bool is_left, std::size_t undelivered) {
  ReplyCare::Data data;
  data.state = state;
  data.is_left = is_left;
  data.undelivered = undelivered;
  data.ask_at_ns = now + 77 * ms;
  data.due_ns = now + 5 * ms;
  data.gap_ns = 8 * ms;
  return {data, {}};
}

// Calls `expect` with a care in each state there is.
template <class Expect>
void in_each_state(Expect expect) {
  for (const State state : all_states) {
    for (const bool is_left : {false, true}) {
      for (const std::size_t undelivered : {0, 1}) {
        SCOPED_TRACE("state " + std::to_string(static_cast<int>(state)) + (is_left ? ", left behind" : "") +
                     (undelivered != 0 ? ", undelivered" : ""));
        ReplyCare care = care_in(state, is_left, undelivered);
        expect(care);
      }
    }
  }
}

void expect_stays(const ReplyCare& care, const ReplyCare::Data& before, Action action) {
  EXPECT_EQ(action, Action::none);
  EXPECT_EQ(care.state(), before.state);
  EXPECT_EQ(care.data().is_left, before.is_left);
}

void expect_called(const ReplyCare& care, Action action) {
  EXPECT_EQ(action, Action::rouse);
  EXPECT_EQ(care.state(), State::called);
}

TEST(ReplyCare, calls_the_agent_once_for_what_is_left_behind) {
  in_each_state([](ReplyCare& care) {
    const ReplyCare::Data before = care.data();
    const Action action = care.left_behind(UnderWay::something);
    if (before.is_left) return expect_stays(care, before, action);
    expect_called(care, action);
    EXPECT_TRUE(care.data().is_left);
  });
}

TEST(ReplyCare, calls_nobody_for_requests_at_their_end) {
  in_each_state([](ReplyCare& care) {
    const ReplyCare::Data before = care.data();
    expect_stays(care, before, care.left_behind(UnderWay::nothing));
  });
}

TEST(ReplyCare, calls_the_agent_whenever_a_thread_hands_over) {
  in_each_state([](ReplyCare& care) {
    expect_called(care, care.hand_over());
    EXPECT_TRUE(care.data().is_left);
  });
}

TEST(ReplyCare, calls_an_agent_that_sleeps_on_replies_when_a_thread_took_in_others) {
  for (const bool beside : {false, true}) {
    for (const std::size_t taken : {0, 1}) {
      in_each_state([&](ReplyCare& care) {
        const ReplyCare::Data before = care.data();
        const Action action = beside ? care.taken_beside(taken) : care.polled(taken, UnderWay::something);
        if (!has_agent(before.state) || before.undelivered == 0) return expect_stays(care, before, action);
        expect_called(care, action);
        EXPECT_EQ(care.data().is_left, before.is_left);
      });
    }
  }
}

TEST(ReplyCare, calls_an_agent_that_sleeps_for_absent_threads_when_all_is_at_its_end) {
  for (const State state : all_states) {
    ReplyCare care = care_in(state, true, 0);
    const ReplyCare::Data before = care.data();
    const Action action = care.polled(1, UnderWay::nothing);
    if (state == State::agent_for_absent) {
      expect_called(care, action);
    } else {
      expect_stays(care, before, action);
    }
    ReplyCare same = care_in(state, true, 0);
    expect_stays(same, before, same.polled(0, UnderWay::nothing));
  }
}

TEST(ReplyCare, calls_an_agent_beside_which_a_thread_takes_replies_again_and_again) {
  for (const State state : {State::agent_for_absent, State::agent_for_sleepers}) {
    ReplyCare care = care_in(state, true, 0);
    const ReplyCare::Data before = care.data();
    for (int i = 1; i < 8; ++i) {
      expect_stays(care, before, care.polled(1, UnderWay::something));
      expect_stays(care, before, care.polled(0, UnderWay::something));
    }
    expect_called(care, care.polled(1, UnderWay::something));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(care.polled(1, UnderWay::something), Action::none) << "once";
  }
}

TEST(ReplyCare, is_called_when_the_agent_comes) {
  in_each_state([](ReplyCare& care) {
    const bool was_left = care.data().is_left;
    care.agent_came();
    EXPECT_EQ(care.state(), State::called);
    EXPECT_EQ(care.data().is_left, was_left);
  });
}

struct Answer {
  State state;
  std::uint64_t ask_at_ns;
};

// What an agent is told that finds no undelivered replies, whatever the state.
void expect_told(Threads threads, UnderWay requests, bool was_polled, bool was_taken, bool is_left, Answer answer) {
  for (const State state : all_states) {
    ReplyCare care = care_in(state, is_left, 0);
    if (was_polled) care.polled(0, UnderWay::something);
    if (was_taken) care.taken_beside(1);
    for (int again = 0; again < 2; ++again) {
      care.agent_asks(threads, requests, now);
      EXPECT_EQ(care.state(), answer.state);
      EXPECT_EQ(care.ask_at_ns(), answer.ask_at_ns);
      EXPECT_EQ(care.data().is_left, is_left && requests == UnderWay::something);
      if (was_polled || was_taken) break;  // since it last asked, nothing was
    }
  }
}

TEST(ReplyCare, tells_the_agent_whether_it_must_sleep_on_replies) {
  constexpr UnderWay some = UnderWay::something, no = UnderWay::nothing;
  for (const bool was_polled : {false, true}) {
    for (const bool was_taken : {false, true}) {
      for (const bool is_left : {false, true}) {
        const Answer of_sleepers{State::agent_for_sleepers, was_taken ? now + ms : ReplyCare::never};
        const Answer of_none{State::none, ReplyCare::never}, of_threads{State::threads_until, now + ms};
        const Answer of_absent{State::agent_for_absent, ReplyCare::never};
        expect_told(Threads::sleep, some, was_polled, was_taken, is_left, of_sleepers);
        expect_told(Threads::sleep, no, was_polled, was_taken, is_left, of_sleepers);
        for (const Threads threads : {Threads::away, Threads::look}) {
          const bool is_looked_for = was_polled || threads == Threads::look;
          expect_told(threads, no, was_polled, was_taken, is_left, of_none);
          expect_told(threads, some, was_polled, was_taken, is_left,
                      !is_left        ? of_none
                      : is_looked_for ? of_threads
                                      : of_absent);
        }
      }
    }
  }
}

TEST(ReplyCare, has_the_agent_ask_less_and_less_often_for_undelivered_replies) {
  ReplyCare care = care_in(State::called, true, 0);
  care.undelivered_came();
  std::uint64_t at = now;
  care.agent_asks(Threads::sleep, UnderWay::something, at);
  EXPECT_EQ(care.ask_at_ns(), at) << "at once";
  for (std::uint64_t gap = ms; gap < 400 * ms; gap *= 2) {
    care.agent_asks(Threads::sleep, UnderWay::something, at);
    EXPECT_EQ(care.ask_at_ns(), at + std::min(gap, 100 * ms));
    care.agent_asks(Threads::sleep, UnderWay::something, at + 1);
    EXPECT_EQ(care.ask_at_ns(), at + std::min(gap, 100 * ms)) << "whatever woke it meanwhile";
    at = care.ask_at_ns();
  }
  care.undelivered_came();
  care.agent_asks(Threads::sleep, UnderWay::something, at);
  EXPECT_EQ(care.ask_at_ns(), at) << "there are more";
  care.undelivered_went();
  care.undelivered_went();
  care.agent_asks(Threads::sleep, UnderWay::something, at);
  EXPECT_EQ(care.ask_at_ns(), ReplyCare::never);
}

}  // namespace
}  // namespace farsum::link
