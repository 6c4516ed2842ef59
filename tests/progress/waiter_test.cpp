// How threads wait beside another runtime: its hook runs between sleeps, and after each the condition is looked at.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "progress/thread_waiter.hpp"

namespace farsum::test {
namespace {

// A thread in the queue of a lock, behind a holder.
class Queued {
 public:
  Queued() {
    queue_.acquire(1, LockMode::exclusive);
    slot_ = queue_.acquire(2, LockMode::exclusive).slot;
  }
  LockGrant awaited() { return {queue_, slot_}; }
  // As who passes over it does.
  bool call() {
    std::uint32_t asleep = lock_word::asleep;
    return queue_.slot(slot_).word.compare_exchange_strong(asleep, lock_word::called);
  }
  void wake() { SystemAtomics::wake(queue_.slot(slot_).word, 1); }
  std::uint32_t word() const { return queue_.slot(slot_).word; }
  // Returns what the word said before.
  std::uint32_t grant() { return queue_.slot(slot_).word.exchange(lock_word::granted); }
  void move() { state_.turns = state_.turns + 1; }
  void stand_behind(std::uint64_t others) {
    queue_.slot(slot_).arrival = others;
    queue_.slot(0).arrival = 0;
    state_.first_waiting = 1;
  }

 private:
  LockQueueState state_{};
  static constexpr std::uint32_t capacity = 16;
  alignas(64) std::array<std::byte, capacity * 64> slots_{};
  LockQueue queue_{state_, slots_.data(), capacity};
  std::uint32_t slot_ = 0;
};

class Waiting : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<NodeSegment>> made =
        NodeSegment::create({.ranks = 1, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = 4096});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    segment_ = std::move(made.value());
    watch_ = std::make_unique<PeerWatch>(*segment_, here_, remote_nodes_, 0);
  }
  ThreadWaiter waiter(std::function<void()> idle) {
    return {{.spin_ns = 1000, .idle = std::move(idle), .idle_gap_ns = 50'000}, *watch_, segment_->rank(0).waiters};
  }

  NodeRanks here_ = NodeRanks::of_all(1);
  RemoteNodes remote_nodes_{here_};
  std::unique_ptr<NodeSegment> segment_;
  std::unique_ptr<PeerWatch> watch_;
};

TEST_F(Waiting, for_what_is_there_already_calls_no_hook) {
  int idles = 0;
  ThreadWaiter waiter = this->waiter([&] { ++idles; });
  EXPECT_TRUE(waiter
                  .wait(
                      waiter.own_events(), [] { return true; }, "test")
                  .is_ok());
  Queued queued;
  queued.grant();
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
  EXPECT_EQ(idles, 0);
}

TEST_F(Waiting, looks_at_the_condition_between_two_calls_of_the_hook) {
  int idles = 0;
  bool looked = false;
  ThreadWaiter waiter = this->waiter([&] {
    EXPECT_TRUE(looked);
    looked = false;
    ++idles;
  });
  const auto done = [&] {
    looked = true;
    return idles == 20;
  };
  EXPECT_TRUE(waiter.wait(waiter.own_events(), done, "test").is_ok());
  EXPECT_EQ(idles, 20);
}

// Counted, by a clock that moves by what each yield takes.
class WaitingOnACrowdedNode : public Waiting {
 protected:
  struct Counts {
    std::uint64_t yields = 0, sleeps = 0;
    bool operator==(const Counts&) const = default;
  };

  // What a wait does that ends after so many looks, or once it has slept.
  Counts of_a_wait(int looks, bool until_it_slept = false) {
    const Counts before = counts();
    int looked = 0;
    const auto done = [&] {
      waiter_->own_events().notify_all();  // no sleep lasts
      return until_it_slept ? waiter_->slept() != before.sleeps : ++looked > looks;
    };
    EXPECT_TRUE(waiter_->wait(waiter_->own_events(), done, "test").is_ok());
    return {waiter_->yielded() - before.yields, waiter_->slept() - before.sleeps};
  }
  void SetUp() override {
    Waiting::SetUp();
    ThreadWaiter::Options options;
    options.is_crowded = true;
    options.idle = [this] { ++idles_; };
    options.idle_gap_ns = 50'000;
    options.now_ns = [this] { return now_ns_; };
    options.yield = [this] { now_ns_ += yield_ns_; };
    waiter_ = std::make_unique<ThreadWaiter>(std::move(options), *watch_, segment_->rank(0).waiters);
    // Other tests of this process may have left the thread with yields that were in vain.
    while (of_a_wait(2).yields == 0) {
    }
  }

  std::uint64_t yield_ns_ = 1'000;
  int idles_ = 0;

 private:
  Counts counts() const { return {waiter_->yielded(), waiter_->slept()}; }

  std::uint64_t now_ns_ = 1'000'000;
  std::unique_ptr<ThreadWaiter> waiter_;
};

TEST_F(WaitingOnACrowdedNode, yields_and_does_not_sleep_where_yields_end_it) {
  for (int wait = 0; wait < 100; ++wait) EXPECT_EQ(of_a_wait(5), (Counts{.yields = 5, .sleeps = 0}));
}

TEST_F(WaitingOnACrowdedNode, sleeps_where_yields_are_in_vain_and_soon_without_them) {
  EXPECT_EQ(of_a_wait(0, true), (Counts{.yields = 100, .sleeps = 1})) << "100 us of yields";
  std::uint64_t yields = 0;
  for (int wait = 0; wait < 640; ++wait) yields += of_a_wait(0, true).yields;
  EXPECT_LE(yields, 16 * 100u) << "five waits that yield before every 64th does";
}

// As a program of short waits that has another runtime to keep going.
TEST_F(WaitingOnACrowdedNode, runs_the_hook_now_and_then_where_yields_end_each_wait) {
  const int before = idles_;
  for (int wait = 0; wait < 100; ++wait) EXPECT_EQ(of_a_wait(5), (Counts{.yields = 5, .sleeps = 0}));
  EXPECT_GE(idles_ - before, 8) << "each 50 us of 500";
  EXPECT_LE(idles_ - before, 11);
}

TEST_F(WaitingOnACrowdedNode, gives_up_after_one_yield_in_which_another_took_a_slice) {
  yield_ns_ = 3'000'000;
  EXPECT_EQ(of_a_wait(0, true), (Counts{.yields = 1, .sleeps = 1}));
  EXPECT_EQ(of_a_wait(0, true), (Counts{.yields = 0, .sleeps = 1}));
  yield_ns_ = 1'000;
  EXPECT_EQ(of_a_wait(5), (Counts{.yields = 5, .sleeps = 0}));
  EXPECT_EQ(of_a_wait(5), (Counts{.yields = 5, .sleeps = 0})) << "once yields end a wait, the next one yields too";
}

// A wait that ends within its first looks, by a clock that stands still in between.
class WaitingForAnotherHost : public Waiting {
 protected:
  int idles_in_a_wait() {
    const int before = idles_;
    int looks = 0;
    EXPECT_TRUE(waiter_
                    ->wait(
                        waiter_->own_events(), [&] { return ++looks == 20; }, "test")
                    .is_ok());
    return idles_ - before;
  }
  void SetUp() override {
    Waiting::SetUp();
    waiter_ = std::make_unique<ThreadWaiter>(
        ThreadWaiter::Options{.idle = [this] { ++idles_; }, .now_ns = [this] { return now_ns_; }}, *watch_,
        segment_->rank(0).waiters);
    waiter_->before_sleep([] {});
  }

  std::uint64_t now_ns_ = 1'000'000;
  int idles_ = 0;
  std::unique_ptr<ThreadWaiter> waiter_;
};

TEST_F(WaitingForAnotherHost, runs_the_hook_meanwhile_at_most_each_30_us) {
  EXPECT_EQ(idles_in_a_wait(), 0) << "on this host all is near";
  waiter_->expect_remote_replies();
  EXPECT_EQ(idles_in_a_wait(), 1);
  for (int i = 0; i < 3; ++i) {
    now_ns_ += 29'999;
    EXPECT_EQ(idles_in_a_wait(), 0);
    now_ns_ += 1;
    EXPECT_EQ(idles_in_a_wait(), 1);
  }
}

TEST_F(WaitingForAnotherHost, runs_no_hook_while_a_thread_is_quiet_and_then_at_once) {
  waiter_->expect_remote_replies();
  {
    ThreadWaiter::Quiet quiet(*waiter_);
    quiet.begin();
    EXPECT_EQ(idles_in_a_wait(), 0);
  }
  EXPECT_EQ(idles_in_a_wait(), 1);
}

TEST_F(Waiting, for_its_turn_runs_the_hook_until_it_has_come) {
  int idles = 0;
  Queued queued;
  ThreadWaiter waiter = this->waiter([&] {
    if (++idles == 20) queued.grant();
  });
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
  EXPECT_EQ(idles, 20);
}

TEST_F(Waiting, for_its_turn_sleeps_before_it_runs_the_hook) {
  Queued queued;
  std::uint32_t found = 0;
  std::uint64_t slept = 0;
  ThreadWaiter* sleeper = nullptr;
  ThreadWaiter waiter = this->waiter([&] {
    slept = sleeper->slept();
    found = queued.grant();
  });
  sleeper = &waiter;
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
  EXPECT_EQ(slept, 1U);
  EXPECT_EQ(found, lock_word::asleep) << "whoever grants would not know that it must be woken";
}

// The hook, which runs in long looks, moves the queue in the tests below.
class WaitingForItsGrant : public Waiting {
 protected:
  std::uint64_t sleeps_where(std::uint64_t others_before, bool moves, bool is_crowded = false) {
    Queued queued;
    queued.stand_behind(others_before);
    int idles = 0;
    ThreadWaiter waiter({.spin_ns = 1'000'000,
                         .idle =
                             [&] {
                               if (moves) queued.move();
                               if (++idles == 10) queued.grant();
                             },
                         .idle_gap_ns = 50'000,
                         .is_crowded = is_crowded},
                        *watch_, segment_->rank(0).waiters);
    LockGrant grant = queued.awaited();
    EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
    EXPECT_EQ(idles, 10);
    return waiter.slept();
  }
};

TEST_F(WaitingForItsGrant, looks_on_while_the_queue_moves) { EXPECT_EQ(sleeps_where(8, true), 0U); }
TEST_F(WaitingForItsGrant, looks_again_when_it_was_called) {
  Queued queued;
  int idles = 0;
  std::uint64_t slept_when_called = 0;
  ThreadWaiter* sleeper = nullptr;
  ThreadWaiter waiter({.spin_ns = 1'000'000,
                       .idle =
                           [&] {
                             ++idles;
                             if (slept_when_called == 0) {
                               if (queued.call()) slept_when_called = sleeper->slept();
                             } else {
                               EXPECT_EQ(queued.word(), lock_word::waiting);
                               queued.grant();
                             }
                           },
                       .idle_gap_ns = 50'000},
                      *watch_, segment_->rank(0).waiters);
  sleeper = &waiter;
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
  EXPECT_GE(slept_when_called, 1U);
  EXPECT_EQ(waiter.slept(), slept_when_called);
}

TEST_F(WaitingForItsGrant, runs_the_hook_though_it_is_called_again_and_again) {
  constexpr int most_calls = 2'000;
  Queued queued;
  std::atomic<int> idles{0};
  ThreadWaiter waiter({.spin_ns = 1000, .idle = [&] { ++idles; }}, *watch_, segment_->rank(0).waiters);
  std::thread caller([&] {
    for (int calls = 0; calls < most_calls && idles == 0;) {
      if (!queued.call()) continue;
      ++calls;
      queued.wake();
    }
    queued.grant();
    queued.wake();
  });
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
  caller.join();
  EXPECT_GE(idles, 1);
}

TEST_F(WaitingForItsGrant, is_not_called_where_it_would_not_look) {
  Queued queued;
  ThreadWaiter waiter({.spin_ns = 0,
                       .idle =
                           [&] {
                             EXPECT_FALSE(queued.call());
                             queued.grant();
                           },
                       .idle_gap_ns = 50'000},
                      *watch_, segment_->rank(0).waiters);
  LockGrant grant = queued.awaited();
  EXPECT_TRUE(waiter.wait_for_grant(grant, "test").is_ok());
}

TEST_F(WaitingForItsGrant, sleeps_when_the_queue_stands_still) { EXPECT_GE(sleeps_where(8, false), 1U); }
TEST_F(WaitingForItsGrant, sleeps_where_it_stands_far_back) { EXPECT_GE(sleeps_where(9, true), 1U); }
TEST_F(WaitingForItsGrant, sleeps_at_once_where_ranks_are_more_than_processors) {
  EXPECT_EQ(sleeps_where(0, true, true), 10U);
}

TEST_F(Waiting, sleeps_without_looking_first_where_ranks_are_more_than_processors) {
  constexpr std::uint64_t longer_than_any_test = 3'600'000'000'000;
  ThreadWaiter waiter({.spin_ns = longer_than_any_test, .gap_ns = 50'000, .idle = {}, .is_crowded = true}, *watch_,
                      segment_->rank(0).waiters);
  EXPECT_TRUE(waiter
                  .wait(
                      waiter.own_events(), [&] { return waiter.slept() == 3; }, "test")
                  .is_ok());
}

// Threads of equal real-time priority run one after the other, each until it gives way or sleeps: so the one that is
// waited for runs on this processor while the waiting one looks, or not before that sleeps. Empty where the machine
// refuses such priorities; else how often the waiting one has slept.
std::optional<std::uint64_t> sleeps_until_answered_beside(ThreadWaiter& waiter) {
  std::atomic<bool> is_asked{false};
  std::atomic<bool> is_done{false};
  bool is_refused = false;
  std::thread asking([&] {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
    const sched_param lowest{.sched_priority = 1};
    is_refused = pthread_setaffinity_np(pthread_self(), sizeof here, &here) != 0 ||
                 pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) != 0;
    if (is_refused) return;
    // It has what its maker has, and may have begun to run before that goes on.
    std::thread answering([&] {
      is_asked.wait(false);
      is_done = true;
    });
    const auto asks = [&] {
      if (!is_asked.exchange(true)) is_asked.notify_one();
      return is_done.load();
    };
    EXPECT_TRUE(waiter.wait(waiter.own_events(), asks, "test").is_ok());
    answering.join();
  });
  asking.join();
  return is_refused ? std::nullopt : std::optional(waiter.slept());
}

TEST_F(Waiting, lets_others_of_its_processor_run_while_it_looks_for_another_host) {
  constexpr std::uint64_t longer_than_any_turn = 2'000'000'000;
  ThreadWaiter waiter({.spin_ns = longer_than_any_turn, .idle = {}}, *watch_, segment_->rank(0).waiters);
  waiter.before_sleep([] {});
  waiter.expect_remote_replies();
  const auto slept = sleeps_until_answered_beside(waiter);
  if (!slept) GTEST_SKIP() << "real-time priorities are refused here";
  EXPECT_EQ(*slept, 0U);
}

TEST_F(Waiting, keeps_its_processor_while_it_looks_at_this_node_and_then_sleeps) {
  constexpr std::uint64_t look_ns = 200'000;
  ThreadWaiter waiter({.spin_ns = look_ns, .gap_ns = 50'000, .idle = {}}, *watch_, segment_->rank(0).waiters);
  const auto slept = sleeps_until_answered_beside(waiter);
  if (!slept) GTEST_SKIP() << "real-time priorities are refused here";
  EXPECT_GE(*slept, 1U);
}

TEST_F(Waiting, looks_on_while_something_of_what_it_waits_for_comes) {
  constexpr std::uint64_t look_ns = 2'000'000;
  ThreadWaiter waiter({.spin_ns = look_ns, .gap_ns = 50'000, .idle = {}}, *watch_, segment_->rank(0).waiters);
  const std::uint64_t begin = monotonic_ns();
  const auto streams = [&] {
    waiter.note_come();
    return monotonic_ns() - begin > 20 * look_ns;
  };
  EXPECT_TRUE(waiter.wait(waiter.own_events(), streams, "test").is_ok());
  EXPECT_EQ(waiter.slept(), 0U);
  // What came in the last wait is no stream.
  EXPECT_TRUE(waiter
                  .wait(
                      waiter.own_events(), [&] { return waiter.slept() == 1; }, "test")
                  .is_ok());
}

// What it does in a look is no looking, but looks that are all slow come to an end as well.
TEST_F(Waiting, sleeps_though_each_look_takes_long) {
  ThreadWaiter waiter({.spin_ns = 100'000, .gap_ns = 50'000, .idle = {}}, *watch_, segment_->rank(0).waiters);
  const auto slow = [&] {
    const std::uint64_t end = monotonic_ns() + 20'000;
    while (monotonic_ns() < end) {
    }
    return waiter.slept() == 1;
  };
  EXPECT_TRUE(waiter.wait(waiter.own_events(), slow, "test").is_ok());
}

TEST_F(Waiting, counts_no_thread_whose_look_has_thrown) {
  ThreadWaiter waiter = this->waiter({});
  waiter.before_sleep([] {});
  waiter.expect_remote_replies();
  for (const bool asleep : {false, true}) {
    bool is_first = true;
    const auto done = [&]() -> bool {
      if (std::exchange(is_first, false) || (asleep && waiter.slept() == 0)) return false;
      throw std::bad_alloc();
    };
    EXPECT_THROW(static_cast<void>(waiter.wait(waiter.own_events(), done, "test")), std::bad_alloc);
    EXPECT_EQ(waiter.lookers(), 0U);
    EXPECT_EQ(waiter.sleepers(), 0U);
  }
}

TEST_F(Waiting, is_told_of_once_where_it_lasts_and_then_where_one_lasts_twice_as_long) {
  std::uint64_t now_ns = 1;
  std::vector<std::string> told;
  const auto tell = [&](const char* doing, std::uint64_t waited_ns) {
    told.emplace_back(doing);
    EXPECT_GE(waited_ns, 100U);
  };
  ThreadWaiter waiter({.spin_ns = 0,
                       .gap_ns = 50'000,
                       .idle = {},
                       .now_ns = [&] { return now_ns; },
                       .told_after_ns = 100,
                       .tell_of_wait = tell},
                      *watch_, segment_->rank(0).waiters);
  const auto wait_for = [&](const char* doing, std::uint64_t looks) {
    const auto done = [&] {
      now_ns += 10;
      if (looks != 0) --looks;
      return looks == 0;
    };
    EXPECT_TRUE(waiter.wait(waiter.own_events(), done, doing).is_ok());
  };
  wait_for("short", 8);
  EXPECT_TRUE(told.empty());
  wait_for("long", 100);
  wait_for("as long as the first was told of", 15);
  wait_for("longer", 60);
  EXPECT_EQ(told, (std::vector<std::string>{"long", "longer"}));
}

TEST_F(Waiting, says_that_it_looks_until_it_sleeps) {
  ThreadWaiter waiter({.spin_ns = 1'000'000, .gap_ns = 50'000, .idle = {}}, *watch_, segment_->rank(0).waiters);
  waiter.expect_remote_replies();
  bool has_slept = false;
  waiter.before_sleep([&] {
    has_slept = true;
    EXPECT_EQ(waiter.lookers(), 0U);
  });
  const auto done = [&] {
    EXPECT_EQ(waiter.lookers(), has_slept ? 0U : 1U);
    return waiter.slept() == 2;
  };
  bool is_first = true;
  EXPECT_TRUE(waiter
                  .wait(
                      waiter.own_events(), [&] { return !std::exchange(is_first, false) && done(); }, "test")
                  .is_ok());
  EXPECT_TRUE(has_slept);
  const auto one_look = [&] { return waiter.lookers() == 1; };
  EXPECT_TRUE(waiter.wait(waiter.own_events(), one_look, "test").is_ok());
  EXPECT_EQ(waiter.lookers(), 0U);
}

// Whoever it hands over to wakes it for a look, and so it must not hand over again for having looked.
TEST_F(Waiting, hands_over_once_however_often_it_sleeps) {
  ThreadWaiter waiter = this->waiter({});
  int handed_over = 0;
  waiter.before_sleep([&] {
    ++handed_over;
    EXPECT_EQ(waiter.sleepers(), 1U);
    waiter.own_events().notify_all();
  });
  for (int wait = 1; wait <= 2; ++wait) {
    const std::uint64_t before = waiter.slept();
    const auto done = [&] {
      waiter.own_events().notify_all();
      return waiter.slept() == before + 3;
    };
    EXPECT_TRUE(waiter.wait(waiter.own_events(), done, "test").is_ok());
    EXPECT_EQ(handed_over, wait);
    EXPECT_EQ(waiter.sleepers(), 0U);
  }
}

class WaitingServed : public Waiting {
 protected:
  // How a thread that is told so attends; it is missed where somebody says that.
  ThreadWaiter::Attending attending() {
    return {.begin =
                [this] {
                  ++begun;
                  return attends = may_attend;
                },
            .attend =
                [this] {
                  if (attends) ++served;
                  return attends;
                },
            .end =
                [this] {
                  ++ended;
                  attends = false;
                }};
  }
  ThreadWaiter waiter_that_looks() {
    return {{.spin_ns = 1'000'000, .gap_ns = 50'000, .idle = {}}, *watch_, segment_->rank(0).waiters};
  }

  int begun = 0, served = 0, ended = 0;
  bool attends = false;
  bool may_attend = true;
};

TEST_F(WaitingServed, serves_before_each_look_and_ends_with_the_wait) {
  ThreadWaiter waiter = waiter_that_looks();
  waiter.attend_by(attending());
  const auto done = [&] { return served == 3; };
  EXPECT_TRUE(waiter.wait_served(waiter.own_events(), done, "test").is_ok());
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(waiter.slept(), 0U);
}

TEST_F(WaitingServed, leaves_it_to_the_agent_before_it_sleeps) {
  ThreadWaiter waiter = this->waiter({});
  waiter.attend_by(attending());
  int served_awake = 0;
  waiter.before_sleep([&] {
    EXPECT_FALSE(attends);
    served_awake = served;
  });
  EXPECT_TRUE(waiter
                  .wait_served(
                      waiter.own_events(),
                      [&] {
                        waiter.own_events().notify_all();
                        return waiter.slept() == 2;
                      },
                      "test")
                  .is_ok());
  EXPECT_GT(served_awake, 0);
  EXPECT_EQ(served, served_awake);
  EXPECT_EQ(ended, 1);
}

TEST_F(WaitingServed, begins_anew_where_it_was_missed) {
  ThreadWaiter waiter = waiter_that_looks();
  waiter.attend_by(attending());
  const auto done = [&] {
    if (served == 2 && begun == 1) attends = false;
    return begun == 2 && served == 4;
  };
  EXPECT_TRUE(waiter.wait_served(waiter.own_events(), done, "test").is_ok());
  EXPECT_EQ(ended, 1);
}

// The library that it waits in serves too.
TEST_F(WaitingServed, does_not_end_what_its_thread_had_begun_before) {
  ThreadWaiter waiter = waiter_that_looks();
  waiter.attend_by(attending());
  attends = true;
  EXPECT_TRUE(waiter
                  .wait_served(
                      waiter.own_events(), [&] { return served == 2; }, "test")
                  .is_ok());
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(ended, 0);
}

TEST_F(WaitingServed, ends_what_its_thread_had_begun_before_it_sleeps) {
  ThreadWaiter waiter = this->waiter({});
  waiter.attend_by(attending());
  attends = true;
  EXPECT_TRUE(waiter
                  .wait_served(
                      waiter.own_events(), [&] { return waiter.slept() != 0; }, "test")
                  .is_ok());
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(ended, 1);
}

TEST_F(WaitingServed, waits_as_ever_where_the_agent_serves_or_the_node_is_crowded) {
  ThreadWaiter waiter = waiter_that_looks();
  waiter.attend_by(attending());
  may_attend = false;
  int looks = 0;
  const auto done = [&] { return ++looks == 5; };
  EXPECT_TRUE(waiter.wait_served(waiter.own_events(), done, "test").is_ok());
  EXPECT_EQ(served, 0);
  EXPECT_EQ(ended, 0);
  begun = 0;
  waiter.be_crowded(true);
  EXPECT_TRUE(waiter
                  .wait_served(
                      waiter.own_events(), [&] { return waiter.slept() != 0; }, "test")
                  .is_ok());
  EXPECT_EQ(begun, 0);
}

}  // namespace
}  // namespace farsum::test
