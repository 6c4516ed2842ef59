// What ranks of a program of sessions agree on, with a library that answers for the other ranks.
#include "sessions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace farsum::mpi {
namespace {

using Answer = Sessions::Answer;
using Facts = Sessions::Facts;

Facts of_state(EngineState state) {
  EngineLife life;
  return Sessions::facts_of(EngineLife::Claim(life, state));
}

// Of one rank in each of the states.
Facts any_of(const std::vector<EngineState>& states) {
  Facts any{};
  for (const EngineState state : states) {
    const Facts one = of_state(state);
    std::transform(any.begin(), any.end(), one.begin(), any.begin(), [](int a, int b) { return std::max(a, b); });
  }
  return any;
}

// Whatever the ranks' states are: a set of them for each of 31 numbers.
std::vector<EngineState> states_of(unsigned set) {
  std::vector<EngineState> states;
  for (unsigned state = 0; state < engine_states; ++state)
    if ((set >> state & 1U) != 0) states.push_back(static_cast<EngineState>(state));
  return states;
}

bool has(const std::vector<EngineState>& states, EngineState state) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

TEST(Sessions, say_of_each_rank_whether_its_engine_runs) {
  EXPECT_EQ(of_state(EngineState::none), (Facts{0, 1, 0, 0}));
  EXPECT_EQ(of_state(EngineState::starting), (Facts{0, 1, 0, 1}));
  EXPECT_EQ(of_state(EngineState::running), (Facts{1, 0, 0, 0}));
  EXPECT_EQ(of_state(EngineState::ending), (Facts{0, 1, 1, 0}));
  EXPECT_EQ(of_state(EngineState::stopped), (Facts{0, 1, 1, 0}));
}

TEST(Sessions, use_an_engine_that_runs_for_all_ranks_and_for_no_others) {
  for (unsigned set = 1; set < 32; ++set) {
    const std::vector<EngineState> states = states_of(set);
    const bool is_shared = states == std::vector{EngineState::running};
    EXPECT_EQ(Sessions::answer_to(any_of(states)) == Answer::runs_for_all, is_shared) << set;
  }
}

TEST(Sessions, start_the_engine_where_no_rank_has_one_nor_is_about_to) {
  for (unsigned set = 1; set < 32; ++set) {
    const std::vector<EngineState> states = states_of(set);
    const bool is_free = states == std::vector{EngineState::none};
    EXPECT_EQ(Sessions::answer_to(any_of(states)) == Answer::start, is_free) << set;
  }
}

TEST(Sessions, leave_a_window_to_the_library_where_some_ranks_have_an_engine_that_others_will_not_join) {
  for (unsigned set = 1; set < 32; ++set) {
    const std::vector<EngineState> states = states_of(set);
    const bool some_run = has(states, EngineState::running) && states.size() > 1;
    const bool may_come =
        has(states, EngineState::starting) && !has(states, EngineState::ending) && !has(states, EngineState::stopped);
    EXPECT_EQ(Sessions::answer_to(any_of(states)) == Answer::not_for_all, some_run && !may_come) << set;
  }
}

TEST(Sessions, ask_again_while_a_rank_starts_or_ends_and_nobody_waits_for_the_window) {
  EXPECT_EQ(Sessions::answer_to(any_of({EngineState::starting})), std::nullopt);
  EXPECT_EQ(Sessions::answer_to(any_of({EngineState::none, EngineState::starting})), std::nullopt);
  EXPECT_EQ(Sessions::answer_to(any_of({EngineState::none, EngineState::ending})), std::nullopt);
  EXPECT_EQ(Sessions::answer_to(any_of({EngineState::none, EngineState::stopped})), std::nullopt);
  EXPECT_EQ(Sessions::answer_to(any_of({EngineState::running, EngineState::starting})), std::nullopt);
}

int asked;
std::optional<Facts> other;  // what the other rank says the first time; later it is as this one
int result = MPI_SUCCESS;

int answer(const void* mine, void* all, int count, MPI_Datatype, MPI_Op, MPI_Comm) {
  Facts any{};
  std::memcpy(any.data(), mine, sizeof any);
  EXPECT_EQ(count, static_cast<int>(any.size()));
  if (asked++ == 0 && other)
    for (std::size_t i = 0; i < any.size(); ++i) any[i] = std::max(any[i], (*other)[i]);
  std::memcpy(all, any.data(), sizeof any);
  return result;
}

class SessionsWithALibrary : public testing::Test {
 protected:
  SessionsWithALibrary() : library_before_(the_library) {
    the_library.Allreduce = answer;
    asked = 0;
    other.reset();
    result = MPI_SUCCESS;
  }
  ~SessionsWithALibrary() override { the_library = library_before_; }

  farsum_mpi_library library_before_;
  EngineLife life_;
  Sessions sessions_{life_};
};

TEST_F(SessionsWithALibrary, hold_the_claim_of_an_engine_that_all_are_to_start) {
  Sessions::Agreement agreed = sessions_.agree(MPI_COMM_SELF);
  EXPECT_EQ(agreed.answer, Answer::start);
  EXPECT_TRUE(agreed.claim.is_held());
  EXPECT_FALSE(life_.claim().is_held());
  agreed.claim.take_up();
  EXPECT_EQ(sessions_.agree(MPI_COMM_SELF).answer, Answer::runs_for_all);
}

TEST_F(SessionsWithALibrary, give_the_claim_up_where_they_do_not_start) {
  other = of_state(EngineState::running);
  EXPECT_EQ(sessions_.agree(MPI_COMM_SELF).answer, Answer::not_for_all);
  EXPECT_TRUE(life_.claim().is_held());
}

TEST_F(SessionsWithALibrary, ask_again_once_another_rank_was_busy) {
  other = of_state(EngineState::starting);
  EXPECT_EQ(sessions_.agree(MPI_COMM_SELF).answer, Answer::start);
  EXPECT_EQ(asked, 2);
}

TEST_F(SessionsWithALibrary, leave_it_to_the_library_where_that_cannot_ask) {
  result = MPI_ERR_OTHER;
  EXPECT_EQ(sessions_.agree(MPI_COMM_SELF).answer, Answer::not_for_all);
  EXPECT_TRUE(life_.claim().is_held());
}

}  // namespace
}  // namespace farsum::mpi
