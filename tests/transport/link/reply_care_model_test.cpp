// Every state that an agent, two threads, two peers and a clock come to with ReplyCare between them, breadth first: no
// reply that nobody will look for, no needless wake-up, no agent that polls for ever. Mistakes show that each is found.
#include <gtest/gtest.h>

#include <deque>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <vector>

#include "reply_care_world.hpp"

namespace farsum::link {
namespace {

using Action = ReplyCare::Action;
using UnderWay = ReplyCare::UnderWay;

// Cares with a mistake, to show that the check would find it.
enum class Mistake : std::uint8_t {
  none,
  left_behind_calls_nobody,
  left_behind_without_end,  // the agent is never told that all is at its end
  hand_over_calls_once,
  undelivered_are_not_called_for_by_polls,
  undelivered_are_not_called_for_beside,
  undelivered_are_not_asked_for,
  undelivered_are_asked_for_at_one_pace,
  undelivered_are_asked_for_at_once,
  polls_are_not_noted,
  polls_are_noted_for_ever,
  lookers_are_not_heard_of,
  sleepers_are_not_heard_of,
  threads_are_not_asked_again,
  what_was_taken_is_not_noted,
  polls_beside_are_not_counted,
  end_is_not_seen_by_polls,
  each_poll_calls,
  agent_that_came_still_sleeps,
};

template <Mistake M>
class WrongCare : public ReplyCare {
 public:
  using ReplyCare::ReplyCare;

  Action left_behind(UnderWay requests) {
    if (M != Mistake::left_behind_calls_nobody) return ReplyCare::left_behind(requests);
    ReplyCare::left_behind(requests);
    return Action::none;
  }
  Action hand_over() {
    const bool was_left = data().is_left;
    const Action action = ReplyCare::hand_over();
    return M == Mistake::hand_over_calls_once && was_left ? Action::none : action;
  }
  Action polled(std::size_t taken, UnderWay requests) {
    const Data before = data();
    const bool had_agent = has_agent();
    const Action action =
        ReplyCare::polled(taken, M == Mistake::end_is_not_seen_by_polls ? UnderWay::something : requests);
    Data after = data();
    if (M == Mistake::polls_are_not_noted) after.was_polled = before.was_polled;
    if (M == Mistake::polls_beside_are_not_counted) after.polls_beside_agent = 0;
    const bool calls_for_undelivered = had_agent && action == Action::rouse && after.undelivered != 0 &&
                                       after.polls_beside_agent != model_pace.polls_beside_agent;
    if (M == Mistake::undelivered_are_not_called_for_by_polls && calls_for_undelivered) {
      after.state = before.state;
      return become(after, Action::none);
    }
    if (M == Mistake::each_poll_calls && had_agent) {
      after.state = State::called;
      return become(after, Action::rouse);
    }
    return become(after, action);
  }
  Action taken_beside(std::size_t taken) {
    const Data before = data();
    const Action action = ReplyCare::taken_beside(taken);
    Data after = data();
    if (M == Mistake::what_was_taken_is_not_noted) after.was_taken = before.was_taken;
    if (M != Mistake::undelivered_are_not_called_for_beside) return become(after, action);
    after.state = before.state;
    return become(after, Action::none);
  }
  void agent_came() {
    if (M != Mistake::agent_that_came_still_sleeps) ReplyCare::agent_came();
  }
  void agent_asks(Threads threads, UnderWay requests, std::uint64_t now_ns) {
    const Data before = data();
    if (M == Mistake::left_behind_without_end) requests = UnderWay::something;
    if (M == Mistake::lookers_are_not_heard_of && threads == Threads::look) threads = Threads::away;
    if (M == Mistake::sleepers_are_not_heard_of && threads == Threads::sleep) threads = Threads::away;
    ReplyCare::agent_asks(threads, requests, now_ns);
    Data after = data();
    if (M == Mistake::polls_are_noted_for_ever) after.was_polled = before.was_polled;
    if (M == Mistake::threads_are_not_asked_again && after.state == State::threads_until) after.ask_at_ns = never;
    if (M == Mistake::undelivered_are_not_asked_for && has_agent()) after.ask_at_ns = never;
    if (M == Mistake::undelivered_are_asked_for_at_one_pace) after.gap_ns = std::min<std::uint64_t>(after.gap_ns, 1);
    if (M == Mistake::undelivered_are_asked_for_at_once && after.undelivered != 0 && has_agent())
      after.ask_at_ns = now_ns;
    become(after, Action::none);
  }

 private:
  Action become(const Data& data, Action action) {
    static_cast<ReplyCare&>(*this) = ReplyCare(data, model_pace);
    return action;
  }
};

struct Outcome {
  std::string failure;
  std::size_t states = 0;
};

// What a run from some state shows, in which the threads begin nothing new.
template <class Care>
class Ending {
 public:
  explicit Ending(const ReplyWorld<Care>& begin) : world_(begin) {}

  // The threads end the calls that they are in.
  std::string failure() {
    if (std::string failure = failure_of_pace(nobody); !failure.empty()) return failure;
    for (std::size_t thread = 0; thread < world_threads; ++thread) {
      if (!world_.is_at(thread, ThreadAt::away)) return "a thread sleeps for a reply that nobody looks for";
      if (world_.request(thread) == Request::unsent) return "a request stays that nobody sends";
    }
    if (world_.has_timer() || world_.care_state() != ReplyCare::State::none) return "the agent polls for ever";
    return failure_of(world_);
  }
  // One of them is never given a processor again: what is undelivered at its link is asked for less and less often.
  std::string failure_with(std::size_t stopped) { return failure_of_pace(stopped); }
  // The peers are silent.
  std::string failure_in_silence() {
    answers_ = false;
    return failure_of_pace(nobody);
  }
  // A thread asks and polls again and again, and no other is there.
  std::string failure_of_round_trips() {
    std::size_t woken = 0;
    for (std::size_t round = 0; round < round_trips; ++round) {
      const std::size_t before = turns_;
      if (round == round_trips / 2) woken = 0;
      if (!make_round_trip(woken)) return "a round trip does not end";
      if (round % 3 == 0 && world_.has_timer()) {
        world_.take(clock_step);
        if (!come_to_rest(nobody)) return "the agent never sleeps";
      }
      woken += turns_ - before;
    }
    return woken != 0 ? "the agent is woken again and again beside a thread that polls" : failure_of(world_);
  }
  void take_all_in() {
    for (std::size_t thread = 0; thread < world_threads; ++thread) {
      if (world_.request(thread) != Request::none) take_in(thread);
    }
  }

 private:
  static constexpr std::uint64_t longest = 48;
  static constexpr std::size_t most_turns = 14, most_steps = 400, round_trips = 40;

  static std::string failure_of(const ReplyWorld<Care>& world) {
    return world.failure() != nullptr ? world.failure() : "";
  }
  bool take_thread(std::size_t thread, std::size_t choice) {
    return world_.take(threads_at + thread * choices_of_thread + choice);
  }
  std::string failure_of_pace(std::size_t stopped) {
    for (std::uint64_t elapsed = 0; elapsed < longest; ++elapsed) {
      if (!come_to_rest(stopped)) return "the agent never sleeps";
      // One that is stopped may have been about to rouse the agent.
      for (std::size_t thread = 0; stopped == nobody && thread < world_threads; ++thread) {
        if (world_.is_forgotten(thread)) return "a thread sleeps for a reply that nobody looks for";
      }
      if (turns_ > most_turns + elapsed / model_pace.longest_gap_ns) return "the agent polls for ever";
      if (!world_.has_timer()) break;
      if (!world_.take(clock_step)) return "time stands still";
    }
    return {};
  }
  // Until nothing happens any more but by the clock.
  bool come_to_rest(std::size_t stopped) {
    for (std::size_t steps = 0; steps < most_steps; ++steps) {
      if (!go_on(stopped)) return true;
    }
    return false;
  }
  bool go_on(std::size_t stopped) {
    for (std::size_t thread = 0; thread < world_threads; ++thread) {
      if (thread == stopped) continue;
      if (world_.is_in_call(thread) ? take_thread(thread, 0) : goes_away(thread)) return true;
      if (world_.is_at(thread, ThreadAt::sleeps) && !world_.is_asleep(thread) && take_thread(thread, 0)) return true;
    }
    for (std::size_t thread = 0; answers_ && thread < world_threads; ++thread) {
      if (world_.take(answers_at + thread)) return true;
    }
    if (!world_.is_agent_asleep()) return world_.take(agent_step);
    const bool is_woken = world_.take(agent_step) || world_.take(descriptor_step) || world_.take(timer_step);
    turns_ += is_woken ? 1 : 0;
    return is_woken;
  }
  bool goes_away(std::size_t thread) { return world_.is_at(thread, ThreadAt::looks) && take_thread(thread, 1); }

  bool take_in(std::size_t thread) {
    world_.take(answers_at + thread);
    if (!take_thread(thread, 2)) return false;
    for (std::size_t steps = 0; steps < most_steps; ++steps) {
      if (world_.is_at(thread, ThreadAt::away) && !world_.is_in_call(thread)) return true;
      if (!take_thread(thread, 0)) return false;
    }
    return false;
  }
  bool make_round_trip(std::size_t& woken) {
    if (!take_thread(0, 0) || !world_.take(answers_at)) return false;
    // The kernel wakes it, and it sleeps on, for the thread is faster.
    woken += world_.is_agent_woken_by_replies() ? 1 : 0;
    return take_in(0) && come_to_rest(nobody);
  }

  ReplyWorld<Care> world_;
  std::size_t turns_ = 0;
  bool answers_ = true;
};

template <class Care>
class Search {
 public:
  Outcome run() {
    visit(ReplyWorld<Care>{}, 0, 0);
    for (std::size_t at = 0; !waiting_.empty() && failure_.empty(); ++at) {
      const ReplyWorld<Care> world = waiting_.front();
      waiting_.pop_front();
      for (std::size_t step = 0; step < step_count && failure_.empty(); ++step) {
        ReplyWorld<Care> next = world;
        if (next.take(step)) visit(next, at, step);
      }
    }
    return {failure_, seen_.size()};
  }

 private:
  struct Hash {
    std::size_t operator()(const typename ReplyWorld<Care>::Key& key) const {
      return key.first * 0x9e3779b97f4a7c15 ^ key.second * 0xc2b2ae3d27d4eb4f ^ key.first >> 29;
    }
  };
  struct Way {
    std::uint32_t from, step;
  };

  void visit(const ReplyWorld<Care>& world, std::size_t from, std::size_t step) {
    if (!seen_.insert(world.key()).second) return;
    ways_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(step)});
    waiting_.push_back(world);
    failure_ = failure_in(world);
    if (!failure_.empty()) failure_ += way_to(ways_.size() - 1);
  }
  static std::string failure_in(const ReplyWorld<Care>& world) {
    if (world.failure() != nullptr) return world.failure();
    // From any other state the agent's steps and the ends of calls lead to such a one.
    if (!world.is_agent_asleep()) return {};
    for (std::size_t stopped = 0; stopped < world_threads; ++stopped) {
      if (!world.is_stoppable(stopped) || world.is_in_call(world_threads - 1 - stopped)) continue;
      if (std::string failure = Ending<Care>(world).failure_with(stopped); !failure.empty()) return failure;
    }
    if (world.is_in_call(0) || world.is_in_call(1)) return {};
    if (std::string failure = Ending<Care>(world).failure_in_silence(); !failure.empty()) return failure;
    Ending<Care> ending(world);
    if (std::string failure = ending.failure(); !failure.empty()) return failure;
    ending.take_all_in();
    return ending.failure_of_round_trips();
  }
  std::string way_to(std::size_t at) const {
    std::string way;
    for (; at != 0; at = ways_[at].from) way = " " + std::to_string(ways_[at].step) + way;
    return ", after steps" + way;
  }

  std::unordered_set<typename ReplyWorld<Care>::Key, Hash> seen_;
  std::deque<ReplyWorld<Care>> waiting_;
  std::vector<Way> ways_;
  std::string failure_;
};

// In make test-all: the explorer goes through millions of states.
TEST(ReplyCareModel, has_somebody_look_for_each_reply_and_wakes_nobody_in_vain) {
  const Outcome outcome = Search<ReplyCare>().run();
  EXPECT_EQ(outcome.failure, "");
  std::printf("             %zu states\n", outcome.states);
}

template <Mistake M>
void expect_caught(const std::string& failure) {
  const Outcome outcome = Search<WrongCare<M>>().run();
  EXPECT_NE(outcome.failure.find(failure), std::string::npos)
      << "found '" << outcome.failure << "', not '" << failure << "'";
}

constexpr const char* nobody_looks = "a thread sleeps for a reply that nobody looks for";
constexpr const char* may_have_gone = "the agent sleeps on for threads that may have gone";
constexpr const char* polls_for_ever = "the agent polls for ever";
constexpr const char* beside_a_thread = "the agent sleeps on replies beside a thread that looks";
constexpr const char* in_vain = "the agent sleeps on replies though none will come";

TEST(ReplyCareModel, catches_what_nobody_is_called_for) {
  expect_caught<Mistake::left_behind_calls_nobody>("a request stays that nobody sends");
  expect_caught<Mistake::hand_over_calls_once>(nobody_looks);
}

TEST(ReplyCareModel, catches_undelivered_replies_that_nobody_looks_for) {
  expect_caught<Mistake::undelivered_are_not_called_for_by_polls>(in_vain);
  expect_caught<Mistake::undelivered_are_not_called_for_beside>(nobody_looks);
  expect_caught<Mistake::undelivered_are_not_asked_for>(may_have_gone);
}

TEST(ReplyCareModel, catches_an_agent_that_polls_for_ever) {
  expect_caught<Mistake::left_behind_without_end>(polls_for_ever);
  expect_caught<Mistake::undelivered_are_asked_for_at_one_pace>(polls_for_ever);
  expect_caught<Mistake::undelivered_are_asked_for_at_once>("the agent never sleeps");
  expect_caught<Mistake::polls_are_noted_for_ever>(polls_for_ever);
  expect_caught<Mistake::agent_that_came_still_sleeps>("the agent never sleeps");
}

TEST(ReplyCareModel, catches_an_agent_that_does_not_hear_of_threads) {
  expect_caught<Mistake::polls_are_not_noted>(beside_a_thread);
  expect_caught<Mistake::lookers_are_not_heard_of>(beside_a_thread);
  expect_caught<Mistake::sleepers_are_not_heard_of>(may_have_gone);
  expect_caught<Mistake::threads_are_not_asked_again>(polls_for_ever);
  expect_caught<Mistake::what_was_taken_is_not_noted>(may_have_gone);
}

TEST(ReplyCareModel, catches_an_agent_that_is_woken_in_vain) {
  expect_caught<Mistake::polls_beside_are_not_counted>(
      "replies wake an agent again and again though a thread takes them");
  expect_caught<Mistake::end_is_not_seen_by_polls>(in_vain);
  expect_caught<Mistake::each_poll_calls>("an agent is roused though nothing is there for it");
}

}  // namespace
}  // namespace farsum::link
