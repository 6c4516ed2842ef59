// Every interleaving of two senders and the receiver of a doorbell, however it sleeps.
#include "lockfree/doorbell.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

// Doorbells with a mistake, of one group of senders, to show that the check would find it.
enum class Mistake : std::uint8_t { none, skips_the_look_after_arming, skips_a_bit_that_is_set, clears_after_visiting };

template <Mistake M>
class WrongDoorbell {
 public:
  template <class WakeDescriptor>
  bool ring(std::uint32_t sender, WakeDescriptor&&) {
    const std::uint64_t bit = std::uint64_t{1} << sender;
    if (M != Mistake::skips_a_bit_that_is_set || (bits_.load(std::memory_order_seq_cst) & bit) == 0) {
      bits_.fetch_or(bit, std::memory_order_seq_cst);
    }
    if (armed_.exchange(0, std::memory_order_seq_cst) == 0) {
      return false;
    }
    ModelAtomics<>::wake(armed_, 1);
    return true;
  }

  template <class Visit>
  void collect(Visit&& visit) {
    const bool late = M == Mistake::clears_after_visiting;
    const std::uint64_t bits =
        late ? bits_.load(std::memory_order_seq_cst) : bits_.exchange(0, std::memory_order_seq_cst);
    for (std::uint32_t sender = 0; sender < 2; ++sender) {
      if ((bits >> sender & 1) != 0) {
        visit(sender);
      }
    }
    if (late) {
      bits_.exchange(0, std::memory_order_seq_cst);
    }
  }

  bool sleep(std::uint64_t timeout_ns) {
    armed_.exchange(1, std::memory_order_seq_cst);
    if (M != Mistake::skips_the_look_after_arming && bits_.load(std::memory_order_seq_cst) != 0) {
      armed_.exchange(0, std::memory_order_seq_cst);
      return true;
    }
    ModelAtomics<>::wait(armed_, 1, timeout_ns);
    return true;
  }

 private:
  ModelAtomics<>::Atomic<std::uint32_t> armed_;
  ModelAtomics<>::Atomic<std::uint64_t> bits_;
};

// As far as a bell knows it: readable from a wake to when it is emptied. Each is a system call, and so a barrier.
template <class Policy>
class Descriptor {
 public:
  void wake(std::uint32_t why) {
    readable_.fetch_or(why, std::memory_order_seq_cst);
    Policy::wake(readable_, 1);
  }
  void await() { Policy::wait(readable_, 0, 0); }
  std::uint32_t empty() { return readable_.exchange(0, std::memory_order_seq_cst); }

 private:
  typename Policy::template Atomic<std::uint32_t> readable_;
};
constexpr std::uint32_t by_ring = 1;
constexpr std::uint32_t by_network = 2;

enum class Sleep : std::uint8_t { futex, descriptor, descriptor_emptied_too_early };

template <class Policy, class Bell>
struct Shared {
  Bell bell;
  Descriptor<Policy> descriptor;
  typename Policy::template Atomic<std::uint32_t> work[2];
};

struct Plan {
  std::uint32_t senders[2] = {0, 1};  // their numbers
  std::uint32_t posts[2] = {1, 1};    // how often each rings
  std::uint32_t awaited[2] = {1, 1};  // what the receiver waits for
  Sleep sleep = Sleep::futex;
  std::size_t killable = no_thread;
  std::size_t max_preemptions = ~std::size_t{0};
};

template <class State>
void post(State& state, const Plan& plan, std::size_t which) {
  for (std::uint32_t i = 1; i <= plan.posts[which]; ++i) {
    forget_all_but({i});
    state.work[which].store(i, std::memory_order_release);
    state.bell.ring(plan.senders[which], [&] { state.descriptor.wake(by_ring); });
  }
}

template <class State>
void sleep(State& state, Sleep how) {
  if (how == Sleep::futex) {
    state.bell.sleep(0);
    return;
  }
  if constexpr (requires { state.bell.rouse(); }) {
    state.bell.sleep_on_descriptor([] { return true; },
                                   [&] {
                                     if (how == Sleep::descriptor_emptied_too_early) state.descriptor.empty();
                                     state.descriptor.await();
                                     state.descriptor.empty();
                                     return true;
                                   });
  }
}

template <class State>
void receive(State& state, const Plan& plan) {
  std::uint32_t seen[2] = {0, 0};
  while (seen[0] < plan.awaited[0] || seen[1] < plan.awaited[1]) {
    forget_all_but({seen[0], seen[1]});
    state.bell.collect([&](std::uint32_t sender) {
      const std::size_t which = sender == plan.senders[0] ? 0 : 1;
      require(sender == plan.senders[which], "a bit of nobody");
      seen[which] = state.work[which].load(std::memory_order_acquire);
    });
    if (seen[0] < plan.awaited[0] || seen[1] < plan.awaited[1]) {
      sleep(state, plan.sleep);
    }
  }
}

template <class Policy = ModelAtomics<>, class Bell = BasicDoorbell<Policy>>
Outcome receive_all(const Plan& plan) {
  using State = Shared<Policy, Bell>;
  return explore<State>(
      {.killable = plan.killable, .max_preemptions = plan.max_preemptions, .finds_races = false},
      {[&](State& s) { post(s, plan, 0); }, [&](State& s) { post(s, plan, 1); }, [&](State& s) { receive(s, plan); }},
      [](State&) {});
}

// A receiver that sleeps by the futex until it has a network, and then on descriptors, as lockfree/bell.hpp does.
enum class Change : std::uint8_t { right, network_added_without_rousing, slept_without_looking_for_it };

template <class Policy>
struct Changing {
  BasicDoorbell<Policy> bell;
  Descriptor<Policy> descriptor;
  typename Policy::template Atomic<std::uint32_t> network;
  typename Policy::template Atomic<std::uint32_t> work;
};

template <class Policy>
void add_network_and_use_it(Changing<Policy>& state, Change change) {
  state.network.store(1, std::memory_order_seq_cst);
  if (change != Change::network_added_without_rousing) state.bell.rouse([&] { state.descriptor.wake(by_ring); });
  state.descriptor.wake(by_network);
}

template <class Policy>
void receive_from_both(Changing<Policy>& state, Change change) {
  bool worked = false;
  std::uint32_t events = 0;
  while (!worked || (events & by_network) == 0) {
    forget_all_but({worked, events});
    state.bell.collect([&](std::uint32_t) { worked = state.work.load(std::memory_order_acquire) != 0; });
    if (worked && (events & by_network) != 0) return;
    if (state.network.load(std::memory_order_acquire) == 0) {
      const bool looks = change != Change::slept_without_looking_for_it;
      state.bell.sleep(0, [&] { return !looks || state.network.load(std::memory_order_seq_cst) == 0; });
      continue;
    }
    state.bell.sleep_on_descriptor([] { return true; },
                                   [&] {
                                     state.descriptor.await();
                                     events |= state.descriptor.empty();
                                     return true;
                                   });
  }
}

Outcome change_over(Change change) {
  using Policy = ModelAtomics<>;
  using State = Changing<Policy>;
  return explore<State>({.finds_races = false},
                        {[=](State& s) { add_network_and_use_it(s, change); },
                         [](State& s) {
                           s.work.store(1, std::memory_order_release);
                           s.bell.ring(0, [&] { s.descriptor.wake(by_ring); });
                         },
                         [=](State& s) { receive_from_both(s, change); }},
                        [](State&) {});
}

template <Mistake M>
using WrongBell = WrongDoorbell<M>;

TEST(DoorbellModel, loses_no_ring_of_two_senders_of_one_group) { expect_holds(receive_all({.senders = {3, 60}})); }

TEST(DoorbellModel, loses_no_ring_of_two_senders_of_two_groups) { expect_holds(receive_all({.senders = {0, 1023}})); }

TEST(DoorbellModel, loses_no_ring_of_a_sender_that_rings_twice) {
  expect_holds(receive_all({.posts = {2, 0}, .awaited = {2, 0}}));
  expect_holds(receive_all({.posts = {2, 1}, .awaited = {2, 1}, .max_preemptions = 3}));
}

TEST(DoorbellModel, a_sender_killed_anywhere_in_ring_does_not_mute_the_other) {
  expect_holds(receive_all({.posts = {1, 2}, .awaited = {0, 2}, .killable = 0, .max_preemptions = 3}));
}

// Takes seconds: the explorer goes through all its states.
TEST(DoorbellModel, loses_no_ring_where_the_receiver_sleeps_on_a_descriptor) {
  expect_holds(receive_all({.senders = {3, 60}, .sleep = Sleep::descriptor}));
  expect_holds(receive_all({.senders = {0, 1023}, .sleep = Sleep::descriptor}));
  expect_holds(receive_all({.posts = {2, 1}, .awaited = {2, 1}, .sleep = Sleep::descriptor, .max_preemptions = 3}));
}

TEST(DoorbellModel, a_sender_killed_anywhere_does_not_mute_the_other_towards_a_descriptor) {
  expect_holds(receive_all(
      {.posts = {1, 2}, .awaited = {0, 2}, .sleep = Sleep::descriptor, .killable = 0, .max_preemptions = 3}));
}

// In make test-all: the explorer goes through all its states.
TEST(DoorbellModel, a_receiver_changes_over_to_descriptors_and_loses_nothing) {
  expect_holds(change_over(Change::right));
}

TEST(DoorbellModel, wake_ends_every_sleep_on_a_descriptor) {
  using State = Shared<ModelAtomics<>, BasicDoorbell<ModelAtomics<>>>;
  expect_holds(explore<State>({.finds_races = false},
                              {[](State& s) { s.bell.ring(0, [&] { s.descriptor.wake(by_ring); }); },
                               [](State& s) { s.bell.wake([&] { s.descriptor.wake(by_ring); }); },
                               [](State& s) {
                                 while (!s.bell.stopped()) {
                                   forget_all_but({});
                                   s.bell.collect([](std::uint32_t) {});
                                   sleep(s, Sleep::descriptor);
                                 }
                               }},
                              [](State&) {}));
}

TEST(DoorbellModel, wake_ends_every_sleep) {
  using State = Shared<ModelAtomics<>, BasicDoorbell<ModelAtomics<>>>;
  expect_holds(explore<State>({.finds_races = false},
                              {[](State& s) { s.bell.ring(0); }, [](State& s) { s.bell.wake(); },
                               [](State& s) {
                                 while (!s.bell.stopped()) {
                                   forget_all_but({});
                                   s.bell.collect([](std::uint32_t) {});
                                   s.bell.sleep(0);
                                 }
                                 require(s.bell.sleep(0), "a sleep after the end found nothing to do");
                               }},
                              [](State&) {}));
}

TEST(DoorbellModel, the_plain_doorbell_that_the_mistakes_are_made_in_is_right) {
  expect_holds(receive_all<ModelAtomics<>, WrongBell<Mistake::none>>({.posts = {2, 1}, .awaited = {2, 1}}));
}

TEST(DoorbellModel, catches_a_receiver_that_does_not_look_after_arming) {
  expect_caught(receive_all<ModelAtomics<>, WrongBell<Mistake::skips_the_look_after_arming>>({}), "deadlock");
}

// Why ring() has no short cut for a bit that is set already.
TEST(DoorbellModel, catches_a_sender_that_skips_a_bit_that_is_set) {
  expect_caught(
      receive_all<ModelAtomics<>, WrongBell<Mistake::skips_a_bit_that_is_set>>({.posts = {2, 1}, .awaited = {2, 1}}),
      "deadlock");
}

TEST(DoorbellModel, catches_a_receiver_that_clears_after_visiting) {
  expect_caught(
      receive_all<ModelAtomics<>, WrongBell<Mistake::clears_after_visiting>>({.posts = {2, 1}, .awaited = {2, 1}}),
      "deadlock");
}

TEST(DoorbellModel, catches_a_sender_that_disarms_before_it_wakes) {
  expect_caught(receive_all<ModelAtomics<>, WrongBell<Mistake::none>>(
                    {.posts = {1, 1}, .awaited = {0, 1}, .killable = 0, .max_preemptions = 3}),
                "deadlock");
}

TEST(DoorbellModel, catches_a_descriptor_that_is_emptied_before_the_sleep) {
  expect_caught(receive_all({.sleep = Sleep::descriptor_emptied_too_early}), "deadlock");
}

TEST(DoorbellModel, catches_a_network_that_is_added_without_rousing) {
  expect_caught(change_over(Change::network_added_without_rousing), "deadlock");
}

// In make test-all: the explorer finds this fault late.
TEST(DoorbellModel, catches_a_sleep_that_does_not_look_for_a_network) {
  expect_caught(change_over(Change::slept_without_looking_for_it), "deadlock");
}

TEST(DoorbellModel, catches_arming_without_a_barrier) {
  expect_caught(receive_all<ModelAtomics<Mutation::exchange_is_a_store>>({}), "deadlock");
}

TEST(DoorbellModel, catches_a_lost_wake) {
  expect_caught(receive_all<ModelAtomics<Mutation::wake_is_lost>>({}), "deadlock");
}

}  // namespace
}  // namespace farsum::model
