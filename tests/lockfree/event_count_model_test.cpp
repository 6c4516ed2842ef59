// Every interleaving of waiters and notifiers of an event count.
#include "model_atomics.hpp"
#include "model_check.hpp"
#include "os/event_count.hpp"

namespace farsum::model {
namespace {

template <class Policy>
struct Shared {
  BasicEventCount<Policy> count;
  typename Policy::template Atomic<std::uint32_t> flags[2];
};

template <class Policy>
bool all_set(Shared<Policy>& shared, std::size_t flags) {
  for (std::size_t i = 0; i < flags; ++i) {
    if (shared.flags[i].load(std::memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

template <class Policy>
void wait_for(Shared<Policy>& shared, std::size_t flags) {
  while (!all_set(shared, flags)) {
    const std::uint32_t key = shared.count.prepare();
    if (all_set(shared, flags)) {
      shared.count.cancel();
      return;
    }
    shared.count.wait(key, 0);
  }
}

// The condition changes by a plain store, as a ring publishes.
template <class Policy>
void set_flag(Shared<Policy>& shared, std::size_t flag) {
  shared.flags[flag].store(1, std::memory_order_release);
  shared.count.notify_all();
}

template <class Policy>
Outcome two_waiters_one_notifier() {
  using State = Shared<Policy>;
  return explore<State>(
      {}, {[](State& s) { wait_for(s, 1); }, [](State& s) { wait_for(s, 1); }, [](State& s) { set_flag(s, 0); }},
      [](State&) {});
}

template <class Policy>
Outcome one_waiter_two_notifiers() {
  using State = Shared<Policy>;
  return explore<State>(
      {}, {[](State& s) { wait_for(s, 2); }, [](State& s) { set_flag(s, 0); }, [](State& s) { set_flag(s, 1); }},
      [](State&) {});
}

TEST(EventCountModel, loses_no_wake_up_with_two_waiters) { expect_holds(two_waiters_one_notifier<ModelAtomics<>>()); }

TEST(EventCountModel, loses_no_wake_up_with_two_notifiers) { expect_holds(one_waiter_two_notifiers<ModelAtomics<>>()); }

TEST(EventCountModel, a_killed_waiter_only_costs_needless_wake_ups) {
  using State = Shared<ModelAtomics<>>;
  const Options options{.killable = 0};
  expect_holds(explore<State>(
      options, {[](State& s) { wait_for(s, 1); }, [](State& s) { wait_for(s, 1); }, [](State& s) { set_flag(s, 0); }},
      [](State&) {}));
}

TEST(EventCountModel, catches_a_notifier_whose_change_stays_behind_its_look_at_the_sleepers) {
  expect_caught(one_waiter_two_notifiers<ModelAtomics<Mutation::modify_is_no_barrier>>(), "deadlock");
}

TEST(EventCountModel, catches_a_lost_wake) {
  expect_caught(two_waiters_one_notifier<ModelAtomics<Mutation::wake_is_lost>>(), "deadlock");
}

TEST(EventCountModel, catches_a_sleep_that_does_not_compare) {
  expect_caught(two_waiters_one_notifier<ModelAtomics<Mutation::wait_does_not_compare>>(), "deadlock");
}

}  // namespace
}  // namespace farsum::model
