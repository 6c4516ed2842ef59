// Every interleaving of members who meet: the last of all is one, has seen what all did, and nobody sleeps on.
#include "lockfree/meeting.hpp"

#include <vector>

#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr std::size_t most_members = 4;

template <class Policy>
struct Shared {
  typename BasicMeeting<Policy>::Line lines[most_members];
  typename Policy::template Atomic<std::uint32_t> topmost;
  typename Policy::template Atomic<std::uint32_t> round;
  BasicEventCount<Policy> events;
  std::uint32_t said[most_members];
  std::uint32_t sum;
};

struct Wish {
  MeetingShape shape;
  std::uint32_t rounds = 1;
  std::uint32_t at_once = 0;
  std::uint64_t gap_ns = 0;
};

template <class Policy>
void meet(Shared<Policy>& shared, BasicMeeting<Policy>& meeting, std::uint32_t me, const Wish& wish) {
  Policy::writes(&shared.said[me], sizeof shared.said[me]);
  shared.said[me] += 1;
  const std::uint32_t round = meeting.round();
  if (meeting.arrive(me, round)) {
    Policy::writes(&shared.sum, sizeof shared.sum);
    for (std::uint32_t member = 0; member < wish.shape.members; ++member) {
      Policy::reads(&shared.said[member], sizeof shared.said[member]);
      shared.sum += shared.said[member];
    }
    meeting.open(round, wish.at_once);
  }
  while (!meeting.is_over(round)) {
    const std::uint32_t key = shared.events.prepare();
    if (meeting.is_over(round))
      shared.events.cancel();
    else
      shared.events.wait(key, wish.gap_ns);
  }
  Policy::reads(&shared.sum, sizeof shared.sum);
}

// All meet so often, and the last adds up what all have said.
template <class Policy>
Outcome all_meet(const Options& options, const Wish& wish) {
  using State = Shared<Policy>;
  std::vector<std::function<void(State&)>> members;
  for (std::uint32_t me = 0; me < wish.shape.members; ++me) {
    members.push_back([me, wish](State& s) {
      BasicMeeting<Policy> meeting(wish.shape, s.topmost, s.lines, s.round, s.events);
      for (std::uint32_t round = 0; round < wish.rounds; ++round) meet(s, meeting, me, wish);
    });
  }
  return explore<State>(options, members, [wish](State& s) {
    // Of each round what all have said up to then.
    require(s.sum == wish.shape.members * wish.rounds * (wish.rounds + 1) / 2, "the last has not seen all");
  });
}

constexpr MeetingShape flat_of_3 = {.members = 3, .flat = 8, .fan = 4};
constexpr MeetingShape tree_of_3 = {.members = 3, .flat = 2, .fan = 2};
constexpr MeetingShape tree_of_4 = {.members = 4, .flat = 2, .fan = 2};

TEST(MeetingModel, ends_when_all_have_come) {
  expect_holds(all_meet<ModelAtomics<>>({}, {.shape = flat_of_3}));
  expect_holds(all_meet<ModelAtomics<>>({}, {.shape = tree_of_3}));
}

TEST(MeetingModel, of_two_levels_and_four_members_has_one_last) {
  expect_holds(all_meet<ModelAtomics<>>({.max_preemptions = 2}, {.shape = tree_of_4, .at_once = 1}));
}

TEST(MeetingModel, follows_upon_a_meeting) {
  expect_holds(all_meet<ModelAtomics<>>({.max_preemptions = 2}, {.shape = tree_of_3, .rounds = 3}));
}

TEST(MeetingModel, wakes_all_where_each_wakes_one) {
  expect_holds(all_meet<ModelAtomics<>>({}, {.shape = tree_of_3, .at_once = 1}));
}

// The explorer's futex wakes the lowest thread first, be it one that sleeps in the next round already. Nothing but the
// gap ends the sleep of those before whom it is woken.
TEST(MeetingModel, catches_a_futex_that_wakes_in_another_order_than_that_of_falling_asleep) {
  expect_caught(all_meet<ModelAtomics<>>({.max_preemptions = 2}, {.shape = tree_of_3, .rounds = 2, .at_once = 1}),
                "deadlock");
}

TEST(MeetingModel, costs_those_whose_waker_was_killed_their_gap) {
  using State = Shared<ModelAtomics<>>;
  // Two sleep; the one that is woken and may be killed has the other to wake.
  const auto with_gap = [](std::uint64_t gap_ns) {
    const auto sleeper = [gap_ns](State& s) {
      while (s.round.load(std::memory_order_acquire) == 0) {
        const std::uint32_t key = s.events.prepare();
        if (s.round.load(std::memory_order_acquire) != 0)
          s.events.cancel();
        else
          s.events.wait(key, gap_ns);
      }
    };
    return explore<State>({.killable = 0},
                          {sleeper, sleeper,
                           [](State& s) {
                             s.round.store(1, std::memory_order_release);
                             s.events.notify_in_turn(1);
                           }},
                          [](State&) {});
  };
  expect_caught(with_gap(0), "deadlock");
  expect_holds(with_gap(1));
}

TEST(MeetingModel, catches_arrivals_that_publish_nothing) {
  expect_caught(all_meet<ModelAtomics<Mutation::release_is_relaxed>>({}, {.shape = tree_of_3}), "race");
}

TEST(MeetingModel, catches_a_lost_wake) {
  expect_caught(all_meet<ModelAtomics<Mutation::wake_is_lost>>({}, {.shape = flat_of_3, .at_once = 1}), "deadlock");
}

TEST(MeetingModel, catches_a_round_that_opens_behind_the_look_at_the_sleepers) {
  expect_caught(all_meet<ModelAtomics<Mutation::modify_is_no_barrier>>({}, {.shape = flat_of_3, .at_once = 1}),
                "deadlock");
}

}  // namespace
}  // namespace farsum::model
