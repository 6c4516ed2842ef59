// The judges judged: histories written by hand, good and bad.
#include "transport/sim/checkers.hpp"

#include <gtest/gtest.h>

#include "transport/sim/sim_random.hpp"

namespace farsum {
namespace {

using Calls = std::vector<HistoryCall>;

HistoryCall fetch_add(std::uint64_t operand, std::uint64_t result, std::uint64_t invoked, std::uint64_t responded) {
  return {.action = HistoryAction::fetch_add,
          .operand = operand,
          .result = result,
          .invoked = invoked,
          .responded = responded};
}
HistoryCall add(std::uint64_t operand, std::uint64_t invoked, std::uint64_t responded) {
  return {.action = HistoryAction::add, .operand = operand, .invoked = invoked, .responded = responded};
}
HistoryCall read(std::uint64_t result, std::uint64_t invoked, std::uint64_t responded) {
  return {.action = HistoryAction::read, .result = result, .invoked = invoked, .responded = responded};
}
HistoryCall write(std::uint64_t operand, std::uint64_t invoked, std::uint64_t responded) {
  return {.action = HistoryAction::write, .operand = operand, .invoked = invoked, .responded = responded};
}
HistoryCall swap_in(std::uint64_t operand, std::uint64_t result, std::uint64_t invoked, std::uint64_t responded) {
  return {
      .action = HistoryAction::swap, .operand = operand, .result = result, .invoked = invoked, .responded = responded};
}
HistoryCall compare_and_swap(std::uint64_t compare, std::uint64_t operand, std::uint64_t result, std::uint64_t invoked,
                             std::uint64_t responded) {
  return {.action = HistoryAction::compare_and_swap,
          .operand = operand,
          .compare = compare,
          .result = result,
          .invoked = invoked,
          .responded = responded};
}
HistoryCall lock(Rank rank, bool is_exclusive, std::uint64_t invoked, std::uint64_t responded) {
  return {.rank = rank,
          .action = is_exclusive ? HistoryAction::lock_exclusive : HistoryAction::lock_shared,
          .invoked = invoked,
          .responded = responded};
}
HistoryCall unlock(Rank rank, bool is_exclusive, std::uint64_t invoked) {
  return {.rank = rank,
          .action = is_exclusive ? HistoryAction::unlock_exclusive : HistoryAction::unlock_shared,
          .invoked = invoked,
          .responded = invoked + 1};
}

constexpr bool exclusive = true;
constexpr bool shared = false;

TEST(CheckTickets, accepts_distinct_tickets_in_the_order_of_real_time) {
  const Calls calls = {fetch_add(1, 0, 1, 4), fetch_add(1, 2, 2, 6), fetch_add(1, 1, 3, 5), fetch_add(1, 3, 7, 8)};
  EXPECT_TRUE(check_tickets(calls, 0, 4).holds());
}

TEST(CheckTickets, accepts_larger_steps_and_a_start_that_is_not_zero) {
  const Calls calls = {fetch_add(5, 100, 1, 2), fetch_add(2, 105, 3, 4)};
  EXPECT_TRUE(check_tickets(calls, 100, 107).holds());
}

TEST(CheckTickets, rejects_a_ticket_given_twice) {
  const Calls calls = {fetch_add(1, 0, 1, 4), fetch_add(1, 0, 2, 3)};
  const Verdict verdict = check_tickets(calls, 0, 1);
  EXPECT_EQ(verdict.outcome, Verdict::Outcome::violated);
  EXPECT_NE(verdict.why.find("given again"), std::string::npos) << verdict.why;
}

TEST(CheckTickets, rejects_intervals_that_overlap) {
  EXPECT_FALSE(check_tickets({fetch_add(5, 0, 1, 2), fetch_add(1, 3, 3, 4)}, 0, 6).holds());
}

TEST(CheckTickets, rejects_a_smaller_ticket_invoked_after_a_larger_one_was_answered) {
  EXPECT_FALSE(check_tickets({fetch_add(1, 1, 1, 2), fetch_add(1, 0, 3, 4)}, 0, 2).holds());
}

TEST(CheckTickets, rejects_that_also_when_other_tickets_lie_between) {
  const Calls calls = {fetch_add(1, 0, 20, 21), fetch_add(1, 1, 1, 30), fetch_add(1, 2, 2, 31), fetch_add(1, 3, 3, 4)};
  EXPECT_FALSE(check_tickets(calls, 0, 4).holds());
}

TEST(CheckTickets, rejects_a_ticket_that_nobody_took) {
  EXPECT_FALSE(check_tickets({fetch_add(1, 0, 1, 2), fetch_add(1, 2, 3, 4)}, 0, 3).holds());
}

TEST(CheckTickets, lets_an_unanswered_call_explain_a_gap) {
  const Calls calls = {fetch_add(1, 0, 1, 2), fetch_add(1, 2, 3, 4), fetch_add(1, 0, 2, no_moment)};
  EXPECT_TRUE(check_tickets(calls, 0, 3).holds());
  EXPECT_FALSE(check_tickets(calls, 0, 4).holds());
}

TEST(CheckTickets, rejects_a_counter_that_ends_too_low) {
  EXPECT_FALSE(check_tickets({fetch_add(1, 0, 1, 2), fetch_add(1, 1, 3, 4)}, 0, 1).holds());
}

TEST(CheckSum, accepts_the_exact_sum_and_nothing_else) {
  const Calls calls = {add(3, 1, 2), fetch_add(4, 0, 3, 4)};
  EXPECT_TRUE(check_sum(calls, 10, 17).holds());
  EXPECT_FALSE(check_sum(calls, 10, 14).holds());
  EXPECT_FALSE(check_sum(calls, 10, 18).holds());
}

TEST(CheckSum, lets_each_unanswered_call_count_or_not) {
  const Calls calls = {add(1, 1, 2), add(10, 3, no_moment), add(100, 4, no_moment)};
  for (const std::uint64_t sum : {1, 11, 101, 111}) EXPECT_TRUE(check_sum(calls, 0, sum).holds()) << sum;
  for (const std::uint64_t sum : {0, 2, 110, 21}) EXPECT_FALSE(check_sum(calls, 0, sum).holds()) << sum;
}

TEST(CheckLock, accepts_holders_that_take_turns) {
  const Calls calls = {lock(1, exclusive, 1, 2), lock(2, exclusive, 2, 6), unlock(1, exclusive, 4),
                       unlock(2, exclusive, 8)};
  EXPECT_TRUE(check_lock(calls, {}).holds());
}

TEST(CheckLock, accepts_sharers_together) {
  const Calls calls = {lock(1, shared, 1, 2), lock(2, shared, 3, 4),    unlock(1, shared, 5),
                       unlock(2, shared, 7),  lock(3, exclusive, 6, 9), unlock(3, exclusive, 11)};
  EXPECT_TRUE(check_lock(calls, {}).holds());
}

TEST(CheckLock, rejects_two_exclusive_holders) {
  const Calls calls = {lock(1, exclusive, 1, 2), lock(2, exclusive, 3, 4), unlock(1, exclusive, 5),
                       unlock(2, exclusive, 7)};
  EXPECT_FALSE(check_lock(calls, {}).holds());
}

TEST(CheckLock, rejects_a_sharer_beside_an_exclusive_holder_whichever_came_first) {
  EXPECT_FALSE(check_lock({lock(1, exclusive, 1, 2), lock(2, shared, 3, 4)}, {}).holds());
  EXPECT_FALSE(check_lock({lock(2, shared, 1, 2), lock(1, exclusive, 3, 4)}, {}).holds());
}

TEST(CheckLock, rejects_a_release_of_what_is_not_held) {
  EXPECT_FALSE(check_lock({unlock(1, exclusive, 1)}, {}).holds());
  EXPECT_FALSE(check_lock({lock(1, shared, 1, 2), unlock(1, exclusive, 3)}, {}).holds());
}

TEST(CheckLock, takes_the_grip_of_the_dead_away) {
  const Calls calls = {lock(1, exclusive, 1, 2), lock(2, exclusive, 3, 10), unlock(2, exclusive, 11)};
  EXPECT_FALSE(check_lock(calls, {}).holds());
  EXPECT_TRUE(check_lock(calls, {{.rank = 1, .moment = 5}}).holds());
  EXPECT_FALSE(check_lock(calls, {{.rank = 1, .moment = 12}}).holds());
}

TEST(CheckLock, does_not_count_a_lock_that_was_never_granted) {
  EXPECT_TRUE(
      check_lock({lock(1, exclusive, 1, no_moment), lock(2, exclusive, 2, 3), unlock(2, exclusive, 4)}, {}).holds());
}

TEST(CheckLinearizable, accepts_a_read_that_overlaps_a_write_either_way) {
  EXPECT_TRUE(check_linearizable({write(7, 1, 4), read(0, 2, 3)}, 0, 7).holds());
  EXPECT_TRUE(check_linearizable({write(7, 1, 4), read(7, 2, 3)}, 0, 7).holds());
}

TEST(CheckLinearizable, rejects_a_stale_read) {
  EXPECT_FALSE(check_linearizable({write(7, 1, 2), read(0, 3, 4)}, 0, std::nullopt).holds());
}

TEST(CheckLinearizable, rejects_two_readers_that_see_the_writes_in_opposite_orders) {
  const Calls calls = {write(1, 1, 20), write(2, 2, 21), read(1, 3, 4), read(2, 5, 6), read(1, 7, 8)};
  EXPECT_FALSE(check_linearizable(calls, 0, std::nullopt).holds());
}

TEST(CheckLinearizable, accepts_one_winner_of_overlapping_compare_and_swaps) {
  const Calls calls = {compare_and_swap(0, 1, 0, 1, 5), compare_and_swap(0, 2, 1, 2, 6),
                       compare_and_swap(0, 3, 1, 3, 4)};
  EXPECT_TRUE(check_linearizable(calls, 0, 1).holds());
}

TEST(CheckLinearizable, rejects_two_winners_of_one_compare_and_swap) {
  const Calls calls = {compare_and_swap(0, 1, 0, 1, 5), compare_and_swap(0, 2, 0, 2, 6)};
  EXPECT_FALSE(check_linearizable(calls, 0, std::nullopt).holds());
}

TEST(CheckLinearizable, rejects_a_lost_update) {
  EXPECT_FALSE(check_linearizable({fetch_add(1, 0, 1, 3), fetch_add(1, 0, 2, 4)}, 0, 1).holds());
  EXPECT_FALSE(check_linearizable({add(1, 1, 3), add(1, 2, 4)}, 0, 1).holds());
  EXPECT_TRUE(check_linearizable({add(1, 1, 3), add(1, 2, 4)}, 0, 2).holds());
}

TEST(CheckLinearizable, accepts_a_chain_of_swaps_and_rejects_a_broken_one) {
  EXPECT_TRUE(check_linearizable({swap_in(1, 0, 1, 9), swap_in(2, 1, 2, 8), swap_in(3, 2, 3, 7)}, 0, 3).holds());
  EXPECT_FALSE(
      check_linearizable({swap_in(1, 0, 1, 9), swap_in(2, 1, 2, 8), swap_in(3, 1, 3, 7)}, 0, std::nullopt).holds());
}

TEST(CheckLinearizable, lets_an_unanswered_call_have_happened_or_not) {
  EXPECT_TRUE(check_linearizable({write(7, 1, no_moment), read(7, 2, 3)}, 0, std::nullopt).holds());
  EXPECT_TRUE(check_linearizable({write(7, 1, no_moment), read(0, 2, 3)}, 0, std::nullopt).holds());
  EXPECT_FALSE(check_linearizable({write(7, 1, no_moment), read(7, 2, 3), read(0, 4, 5)}, 0, std::nullopt).holds());
}

TEST(CheckLinearizable, says_undecided_at_its_bound) {
  Calls calls;
  for (std::uint64_t i = 0; i < 30; ++i) calls.push_back(add(std::uint64_t{1} << i, i + 1, 100 + i));
  calls.push_back(read(1, 200, 201));
  EXPECT_EQ(check_linearizable(calls, 0, std::nullopt, 1000).outcome, Verdict::Outcome::undecided);
}

// A generator of true histories: an atomic element, calls that overlap, and the moment of effect inside each call.
Calls atomic_history(SimRandom& random, std::size_t count) {
  struct Plan {
    HistoryCall call;
    std::uint64_t effect;
  };
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t effect = 1000 * (i + 1);
    HistoryCall call;
    call.action = static_cast<HistoryAction>(random.below(6));
    call.operand = random.below(3);
    call.compare = random.below(3);
    call.invoked = effect - 1 - random.below(4) * 1000 - random.below(400);
    if (call.invoked > effect) call.invoked = random.below(500);
    call.responded = effect + 1 + random.below(4) * 1000 + random.below(400);
    plans.push_back({.call = call, .effect = effect});
  }
  std::uint64_t value = 0;
  Calls calls;
  for (Plan& plan : plans) {
    plan.call.result = value;
    switch (plan.call.action) {
      case HistoryAction::fetch_add:
      case HistoryAction::add:
        value += plan.call.operand;
        break;
      case HistoryAction::write:
      case HistoryAction::swap:
        value = plan.call.operand;
        break;
      case HistoryAction::compare_and_swap:
        value = value == plan.call.compare ? plan.call.operand : value;
        break;
      default:
        break;
    }
    calls.push_back(plan.call);
  }
  return calls;
}

// The order of effects explains the history, whatever the seed: no false alarm.
TEST(CheckLinearizable, accepts_whatever_an_atomic_element_does) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimRandom random(seed);
    const Verdict verdict = check_linearizable(atomic_history(random, 60), 0, std::nullopt);
    EXPECT_TRUE(verdict.holds()) << "seed " << seed << ": " << verdict.why;
  }
}

TEST(CheckLinearizable, rejects_a_result_that_the_element_never_held) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimRandom random(seed);
    Calls calls = atomic_history(random, 40);
    HistoryCall& damaged = calls[random.below(calls.size())];
    if (damaged.action == HistoryAction::add || damaged.action == HistoryAction::write) continue;
    damaged.result = 1'000'000;
    EXPECT_FALSE(check_linearizable(calls, 0, std::nullopt).holds()) << "seed " << seed;
  }
}

TEST(CheckEverything, judges_each_object_by_its_kind) {
  History history;
  const auto write_id = history.invoke({.rank = 1, .action = HistoryAction::write, .object = 1, .operand = 5}, 10);
  history.respond(write_id, 0, 20);
  const auto read_id = history.invoke({.rank = 2, .action = HistoryAction::read, .object = 1}, 30);
  history.respond(read_id, 5, 40);
  const auto lock_id = history.invoke({.rank = 1, .action = HistoryAction::lock_exclusive, .object = 2}, 50);
  history.respond(lock_id, 0, 60);
  EXPECT_TRUE(check_everything(history).holds());

  const auto second = history.invoke({.rank = 2, .action = HistoryAction::lock_exclusive, .object = 2}, 70);
  history.respond(second, 0, 80);
  EXPECT_FALSE(check_everything(history).holds());
}

}  // namespace
}  // namespace farsum
