// The engine's life, without an engine: its table, state by state and step by step, and the class that threads share.
#include "engine_life.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace farsum::mpi {
namespace {

using State = EngineState;
using Step = EngineStep;

struct Row {
  State from;
  Step step;
  std::optional<State> to;
};

constexpr std::optional<State> never;

const std::vector<Row> rows = {
    {State::none, Step::claim, State::starting},
    {State::none, Step::give_up, never},
    {State::none, Step::take_up, never},
    {State::none, Step::end, State::none},
    {State::none, Step::stop, never},
    {State::none, Step::ended, never},
    {State::starting, Step::claim, never},
    {State::starting, Step::give_up, State::none},
    {State::starting, Step::take_up, State::running},
    {State::starting, Step::end, State::starting},
    {State::starting, Step::stop, never},
    {State::starting, Step::ended, never},
    {State::running, Step::claim, never},
    {State::running, Step::give_up, never},
    {State::running, Step::take_up, never},
    {State::running, Step::end, State::ending},
    {State::running, Step::stop, never},
    {State::running, Step::ended, never},
    {State::ending, Step::claim, never},
    {State::ending, Step::give_up, never},
    {State::ending, Step::take_up, never},
    {State::ending, Step::end, State::ending},
    {State::ending, Step::stop, State::stopped},
    {State::ending, Step::ended, never},
    {State::stopped, Step::claim, never},
    {State::stopped, Step::give_up, never},
    {State::stopped, Step::take_up, never},
    {State::stopped, Step::end, State::stopped},
    {State::stopped, Step::stop, never},
    {State::stopped, Step::ended, State::none},
};

TEST(EngineStates, follow_one_another_as_the_table_says) {
  ASSERT_EQ(rows.size(), engine_states * engine_steps);
  for (const Row& row : rows)
    EXPECT_EQ(state_after(row.from, row.step), row.to)
        << "state " << static_cast<int>(row.from) << ", step " << static_cast<int>(row.step);
}

TEST(EngineStates, come_back_to_none_from_each) {
  for (const State from : {State::starting, State::running, State::ending, State::stopped}) {
    State now = from;
    for (const Step step : {Step::take_up, Step::end, Step::stop, Step::ended})
      now = state_after(now, step).value_or(now);
    EXPECT_EQ(now, State::none) << static_cast<int>(from);
  }
}

TEST(EngineLife, has_one_claim_at_a_time) {
  EngineLife life;
  {
    const EngineLife::Claim claim = life.claim();
    EXPECT_TRUE(claim.is_held());
    const EngineLife::Claim other = life.claim();
    EXPECT_FALSE(other.is_held());
    EXPECT_EQ(other.found(), State::starting);
  }
  EXPECT_TRUE(life.claim().is_held()) << "a claim that was given up is free again";
}

TEST(EngineLife, moves_a_claim_without_giving_it_up) {
  EngineLife life;
  EngineLife::Claim first = life.claim();
  EngineLife::Claim second = std::move(first);
  EXPECT_TRUE(second.is_held());
  EXPECT_FALSE(life.claim().is_held());
  second.take_up();
  EXPECT_FALSE(second.is_held());
  EXPECT_TRUE(life.engine_runs());
}

TEST(EngineLife, runs_from_when_it_was_taken_up_until_it_has_stopped) {
  EngineLife life;
  EXPECT_FALSE(life.engine_runs());
  {
    EngineLife::Claim claim = life.claim();
    EXPECT_FALSE(life.engine_runs());
    claim.take_up();
  }
  EXPECT_TRUE(life.engine_runs());
  EXPECT_EQ(life.claim().found(), State::running);
  life.announce_end();
  EXPECT_TRUE(life.engine_runs());
  EXPECT_EQ(life.claim().found(), State::ending);
  EXPECT_TRUE(life.begin_to_end());
  EXPECT_TRUE(life.engine_runs());
  life.stopped();
  EXPECT_FALSE(life.engine_runs());
  EXPECT_EQ(life.claim().found(), State::stopped) << "what belonged to it is still there";
  life.ended();
  EXPECT_TRUE(life.claim().is_held());
}

TEST(EngineLife, has_nothing_to_end_where_no_engine_runs) {
  EngineLife life;
  life.announce_end();
  EXPECT_FALSE(life.begin_to_end());
  EXPECT_TRUE(life.claim().is_held());
}

TEST(EngineLife, ends_an_engine_that_another_thread_starts_only_once_it_runs) {
  EngineLife life;
  EngineLife::Claim claim = life.claim();
  life.announce_end();  // does not wait
  std::atomic<bool> has_ended{false};
  std::thread ender([&] {
    EXPECT_TRUE(life.begin_to_end());
    has_ended.store(true, std::memory_order_release);
    life.stopped();
    life.ended();
  });
  EXPECT_FALSE(has_ended.load(std::memory_order_acquire));
  claim.take_up();
  ender.join();
  EXPECT_FALSE(life.engine_runs());
}

TEST(EngineLife, waits_for_a_thread_that_gives_its_claim_up) {
  EngineLife life;
  std::optional<EngineLife::Claim> claim(life.claim());
  std::thread ender([&] { EXPECT_FALSE(life.begin_to_end()); });
  claim.reset();
  ender.join();
}

TEST(EngineLife, lets_one_of_many_threads_start_it) {
  EngineLife life;
  std::atomic<int> starts{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!life.engine_runs()) {
        EngineLife::Claim claim = life.claim();
        if (!claim.is_held()) continue;
        starts.fetch_add(1, std::memory_order_relaxed);
        claim.take_up();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(starts.load(std::memory_order_relaxed), 1);
}

}  // namespace
}  // namespace farsum::mpi
