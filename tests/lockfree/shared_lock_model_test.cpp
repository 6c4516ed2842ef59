// Every interleaving of three who want one shared lock, and of the death of one of them between any two writes; and of
// two threads of one id, of which one may have it.
#include <optional>
#include <vector>

#include "lockfree/shared_lock.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"
#include "shared_lock_model.hpp"

namespace farsum::model {
namespace {

constexpr std::uint32_t capacity = 3;
constexpr std::uint32_t killable_id = 1;

struct NobodyIsEverDead {
  bool operator()(std::uint32_t) const { return false; }
};

template <class Policy>
struct Shared {
  BasicSharedLockState<Policy> lock;
  SlotOnItsLine<Policy> slots[capacity];
  std::uint32_t data;
  std::uint32_t times;
};

template <class Policy>
using View = BasicSharedLock<Policy, ExplorerKnowsTheDead>;

// Whoever was called is asleep again at once: it has looked in vain.
template <class Grant>
bool answers(Grant& grant) {
  (void)grant.answer_call();
  return true;
}

// One that looks until its turn has come, or it has heard of the one death, so that it passes over those that sleep.
template <class Policy>
void look_and_lock(Shared<Policy>& shared, std::uint32_t id) {
  View<Policy> lock(shared.lock, capacity);
  bool has_heard = false;
  const auto looks = [&](auto& grant) {
    forget_all_but({id, reinterpret_cast<std::uintptr_t>(grant.word()), has_heard});
    if (has_heard) {
      if (grant.fall_asleep()) grant.sleep(0);
      return answers(grant);
    }
    if (!grant.has_come()) Policy::pause();
    if (!grant.has_come() && ExplorerKnowsTheDead{}(killable_id)) {
      lock.remove_dead(killable_id, id);
      has_heard = true;
    }
    return true;
  };
  require(lock.lock(id, LockMode::exclusive, looks) == LockResult::acquired, "not acquired");
  forget_all_but({id});
  touch<Policy>(shared.data, LockMode::exclusive);
  require(lock.unlock(id, LockMode::exclusive), "not held at unlock");
}

// With somebody killable the sleeps end in time-outs, after which the dead are looked for, as the engine's waits do.
// Once the one death is known nothing is left that they could find.
template <class Policy, class DeadCheck>
void lock_once(Shared<Policy>& shared, std::uint32_t id, LockMode mode, bool deaths) {
  BasicSharedLock<Policy, DeadCheck> lock(shared.lock, capacity);
  bool hears_of_deaths = deaths;
  const auto wait = [&](auto& grant) {
    forget_all_but({id, reinterpret_cast<std::uintptr_t>(grant.word()), hears_of_deaths});
    if (!grant.fall_asleep()) return answers(grant);
    const WaitResult result = grant.sleep(hears_of_deaths ? 1 : 0);
    (void)grant.answer_call();
    if (result == WaitResult::timed_out && DeadCheck{}(killable_id)) {
      lock.remove_dead(killable_id, id);
      hears_of_deaths = false;
    }
    return true;
  };
  require(lock.lock(id, mode, wait) == LockResult::acquired, "not acquired");
  forget_all_but({id});
  touch<Policy>(shared.data, mode);
  require(lock.unlock(id, mode), "not held at unlock");
}

template <class Policy>
void require_free_once_the_dead_is_removed(Shared<Policy>& shared) {
  View<Policy> lock(shared.lock, capacity);
  bool dead_named = lock.guard_holder() == killable_id;
  lock.for_each_holder([&](std::uint32_t id, LockMode) {
    require(id == killable_id && Explorer::current->was_killed(), "a living holder is left");
    dead_named = true;
  });
  if (dead_named || Explorer::current->was_killed()) {
    lock.remove_dead(killable_id, 9);
  }
  require(lock.try_lock(9, LockMode::exclusive), "not free in the end");
}

template <class Policy, class DeadCheck = ExplorerKnowsTheDead>
Outcome each_locks_once(std::vector<LockMode> modes, std::size_t killable = no_thread,
                        std::size_t max_preemptions = ~std::size_t{0}) {
  using State = Shared<Policy>;
  std::vector<std::function<void(State&)>> bodies;
  for (std::uint32_t i = 0; i < modes.size(); ++i) {
    bodies.emplace_back(
        [=, mode = modes[i]](State& s) { lock_once<Policy, DeadCheck>(s, i + 1, mode, killable != no_thread); });
  }
  return explore<State>({.killable = killable, .max_preemptions = max_preemptions}, bodies,
                        require_free_once_the_dead_is_removed<Policy>);
}

// A waiter that changes its word so whatever it was: a grant that came just before is lost.
template <class T, std::uint32_t from, std::uint32_t to>
class ForgetsToCompare : public ModelAtomic<T, Mutation::none> {
 public:
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    if (expected != from || desired != to)
      return ModelAtomic<T, Mutation::none>::compare_exchange_strong(expected, desired, success, failure);
    this->store(desired, success);
    return true;
  }
};

struct FallsAsleepWithoutComparing : ModelAtomics<> {
  template <class T>
  using Atomic = ForgetsToCompare<T, lock_word::waiting, lock_word::asleep>;
};
struct AnswersWithoutComparing : ModelAtomics<> {
  template <class T>
  using Atomic = ForgetsToCompare<T, lock_word::called, lock_word::waiting>;
};

// Two that sleep and one that looks, which is handed the lock before them where it came behind them.
template <class Policy>
Outcome one_looks(std::size_t killable, std::size_t max_preemptions) {
  using State = Shared<Policy>;
  const bool deaths = killable != no_thread;
  const std::vector<std::function<void(State&)>> bodies{
      [=](State& s) { lock_once<Policy, ExplorerKnowsTheDead>(s, 1, LockMode::exclusive, deaths); },
      [=](State& s) { lock_once<Policy, ExplorerKnowsTheDead>(s, 2, LockMode::exclusive, deaths); },
      [](State& s) { look_and_lock<Policy>(s, 3); }};
  return explore<State>({.killable = killable, .max_preemptions = max_preemptions}, bodies,
                        require_free_once_the_dead_is_removed<Policy>);
}

// As the threads of one rank use a window's lock: whose epoch it is stands in a word of the process, which all change
// by plain loads and stores under the guard.
enum Epoch : std::uint32_t { none, changing, locked };

template <class Policy>
struct OfOneId {
  Shared<Policy> shared;
  typename Policy::template Atomic<std::uint32_t> epoch;
};

template <class Policy>
auto moves_epoch(OfOneId<Policy>& state, Epoch from, Epoch to) {
  return [&state, from, to] {
    if (state.epoch.load(std::memory_order_relaxed) != from) return false;
    state.epoch.store(to, std::memory_order_relaxed);
    return true;
  };
}

const auto sleep_until_woken = [](auto& grant) {
  if (grant.fall_asleep()) grant.sleep(0);
  return answers(grant);
};

template <class Policy>
void quickly(OfOneId<Policy>& state) {
  View<Policy> lock(state.shared.lock, capacity);
  const auto stands_at = [&](Epoch epoch) {
    return [&state, epoch] { return state.epoch.load(std::memory_order_relaxed) == epoch; };
  };
  const auto move_to = [&](Epoch epoch) { state.epoch.store(epoch, std::memory_order_relaxed); };
  const auto then = [&](Requested::Kind kind) { move_to(kind == Requested::Kind::granted ? locked : changing); };
  const Requested requested =
      lock.take_or_queue_once(1, LockMode::exclusive, lock_word::waiting, stands_at(none), then);
  if (requested.kind == Requested::Kind::queued) {
    require(lock.wait(1, requested.slot, sleep_until_woken) == LockResult::acquired, "not acquired");
    move_to(locked);
  } else if (requested.kind != Requested::Kind::granted) {
    return;
  }
  touch<Policy>(state.shared.data, LockMode::exclusive);
  // The guard may be the other thread's for a moment.
  while (!lock.try_unlock_once(1, LockMode::exclusive, stands_at(locked), [&] { move_to(none); })) Policy::yield();
}

template <class Policy, bool guarded>
void the_long_way(OfOneId<Policy>& state) {
  View<Policy> lock(state.shared.lock, capacity);
  const auto claim = moves_epoch(state, none, changing);
  if (!guarded && !claim()) return;
  const Requested requested =
      lock.take_or_queue(1, LockMode::exclusive, lock_word::waiting, [&] { return !guarded || claim(); });
  if (requested.kind == Requested::Kind::refused) return;
  if (requested.kind == Requested::Kind::queued) {
    require(guarded, "claimed, and the lock is another thread's");
    require(lock.wait(1, requested.slot, sleep_until_woken) == LockResult::acquired, "not acquired");
  }
  state.epoch.store(locked, std::memory_order_relaxed);
  touch<Policy>(state.shared.data, LockMode::exclusive);
  const std::optional<bool> held = lock.unlock(1, LockMode::exclusive, moves_epoch(state, locked, changing));
  require(held.has_value(), "the epoch was not this thread's");
  require(*held, "not held at unlock");
  state.epoch.store(none, std::memory_order_release);
}

template <class Policy>
void as_another(OfOneId<Policy>& state) {
  lock_once<Policy, ExplorerKnowsTheDead>(state.shared, 2, LockMode::exclusive, false);
}

template <bool guarded>
Outcome two_threads_of_one_id() {
  using Policy = ModelAtomics<>;
  using State = OfOneId<Policy>;
  const std::vector<std::function<void(State&)>> bodies{quickly<Policy>, the_long_way<Policy, guarded>,
                                                        guarded ? as_another<Policy> : quickly<Policy>};
  return explore<State>({.max_preemptions = 2}, bodies, [](State& state) {
    require(state.epoch.load(std::memory_order_relaxed) == none, "an epoch is left");
    require_free_once_the_dead_is_removed<Policy>(state.shared);
  });
}

constexpr LockMode x = LockMode::exclusive;
constexpr LockMode s = LockMode::shared;

TEST(SharedLockModel, keeps_three_writers_apart_and_loses_no_grant) {
  expect_holds(each_locks_once<ModelAtomics<>>({x, x}));
  expect_holds(each_locks_once<ModelAtomics<>>({x, x, x}, no_thread, 2));
}

TEST(SharedLockModel, keeps_a_writer_from_two_readers_and_loses_no_grant) {
  expect_holds(each_locks_once<ModelAtomics<>>({x, s}));
  expect_holds(each_locks_once<ModelAtomics<>>({x, s, s}, no_thread, 2));
}

// Takes seconds: the explorer goes through all its states.
TEST(SharedLockModel, survives_a_writer_killed_anywhere) {
  expect_holds(each_locks_once<ModelAtomics<>>({x, x}, 0, 2));
  expect_holds(each_locks_once<ModelAtomics<>>({x, x, s}, 0, 1));
}

// In make test-all: the explorer goes through all its states.
TEST(SharedLockModel, survives_a_reader_killed_anywhere) {
  expect_holds(each_locks_once<ModelAtomics<>>({s, x}, 0, 2));
  expect_holds(each_locks_once<ModelAtomics<>>({s, x, s}, 0, 1));
}

TEST(SharedLockModel, loses_no_grant_where_one_looks_and_passes_over_sleepers) {
  expect_holds(one_looks<ModelAtomics<>>(no_thread, 1));
}

TEST(SharedLockModel, survives_one_killed_who_passes_or_calls_others) { expect_holds(one_looks<ModelAtomics<>>(0, 0)); }

TEST(SharedLockModel, catches_a_sleeper_that_answers_over_its_grant) {
  expect_caught(each_locks_once<AnswersWithoutComparing>({x, x}), "deadlock");
}

// Takes seconds: the explorer goes through all its states.
TEST(SharedLockModel, gives_threads_of_one_id_one_epoch) { expect_holds(two_threads_of_one_id<true>()); }

TEST(SharedLockModel, catches_a_claim_without_the_guard) {
  expect_caught(two_threads_of_one_id<false>(), "another thread's");
}

TEST(SharedLockModel, catches_a_guard_that_is_not_atomic) {
  expect_caught(each_locks_once<ModelAtomics<Mutation::compare_exchange_is_torn>>({x, x, x}), "race");
}

TEST(SharedLockModel, catches_a_hand_over_that_orders_nothing) {
  expect_caught(each_locks_once<ModelAtomics<Mutation::release_is_relaxed>>({x, x, x}), "race");
}

TEST(SharedLockModel, catches_a_lost_grant) {
  expect_caught(each_locks_once<ModelAtomics<Mutation::wake_is_lost>>({x, x, x}), "deadlock");
}

TEST(SharedLockModel, catches_a_death_that_nobody_notices) {
  expect_caught(each_locks_once<ModelAtomics<>, NobodyIsEverDead>({x, x}, 0), "livelock");
}

// A granter that looks whether the waiter sleeps and then stores, and a waiter that does so with its own word.
TEST(SharedLockModel, catches_a_granter_that_looks_before_it_stores) {
  expect_caught(each_locks_once<ModelAtomics<Mutation::exchange_is_a_store>>({x, x}), "deadlock");
}

TEST(SharedLockModel, catches_a_waiter_that_sleeps_over_its_grant) {
  expect_caught(each_locks_once<FallsAsleepWithoutComparing>({x, x}), "deadlock");
}

// A sleep that does not look at its word misses a grant that came first.
TEST(SharedLockModel, catches_a_sleep_that_does_not_compare) {
  expect_caught(each_locks_once<ModelAtomics<Mutation::wait_does_not_compare>>({x, x, x}), "deadlock");
}

}  // namespace
}  // namespace farsum::model
