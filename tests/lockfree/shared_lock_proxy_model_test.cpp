// Every interleaving of those who lock for themselves and of an owner that locks for another rank, and of the death of
// either between any two writes.
#include <optional>
#include <vector>

#include "lockfree/shared_lock.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"
#include "shared_lock_model.hpp"

namespace farsum::model {
namespace {

constexpr std::uint32_t capacity = 3;
// Ids are threads plus one, so that the explorer knows whose death is meant; the other's is nobody's here.
constexpr std::uint32_t first_local = 1;
constexpr std::uint32_t owner = 2;
constexpr std::uint32_t second_local = 3;
constexpr std::uint32_t other = 9;

enum class Mistake : std::uint8_t {
  none,
  granter_does_not_ring,
  owner_enters_as_the_other,
  owner_does_not_look_after_a_death,
};

struct Plan {
  LockMode local = LockMode::exclusive;
  LockMode of_other = LockMode::exclusive;
  bool withdraws = false;
  std::uint32_t killed = 0;  // an id; 0 for none
  Mistake mistake = Mistake::none;
};

template <class Policy>
struct Shared {
  BasicSharedLockState<Policy> lock;
  SlotOnItsLine<Policy> slots[capacity];
  typename Policy::template Atomic<std::uint32_t> bell;  // of the owner
  std::uint32_t data;
};

template <class Policy>
using View = BasicSharedLock<Policy, ExplorerKnowsTheDead>;

template <class Policy>
void ring_if_granted(Shared<Policy>& shared, const View<Policy>& lock, const Plan& plan) {
  if (!lock.granted_for_another() || plan.mistake == Mistake::granter_does_not_ring) return;
  shared.bell.fetch_add(1, std::memory_order_release);
  Policy::wake(shared.bell, 1);
}

// The owner's death ends what it held for the other.
template <class Policy>
void remove_the_dead(View<Policy>& lock, std::uint32_t dead, std::uint32_t me) {
  lock.remove_dead(dead, me);
  if (dead == owner) lock.remove_dead(other, me);
}

template <class Policy>
void locks_for_itself(Shared<Policy>& shared, std::uint32_t id, const Plan& plan) {
  View<Policy> lock(shared.lock, capacity);
  // Sleeps end in time-outs until the one death is known, after which nothing is left that they could find.
  bool hears_of_deaths = plan.killed != 0;
  const auto wait = [&](auto& grant) {
    forget_all_but({id, reinterpret_cast<std::uintptr_t>(grant.word()), lock.granted_for_another(), hears_of_deaths});
    WaitResult result = WaitResult::changed;
    if (grant.fall_asleep()) result = grant.sleep(hears_of_deaths ? 1 : 0);
    (void)grant.answer_call();
    if (result == WaitResult::timed_out && ExplorerKnowsTheDead{}(plan.killed)) {
      remove_the_dead(lock, plan.killed, id);
      ring_if_granted(shared, lock, plan);
      hears_of_deaths = false;
    }
    return true;
  };
  require(lock.lock(id, plan.local, wait) == LockResult::acquired, "not acquired");
  touch<Policy>(shared.data, plan.local);
  require(lock.unlock(id, plan.local), "not held at unlock");
  ring_if_granted(shared, lock, plan);
}

template <class Policy>
void await_grant(Shared<Policy>& shared, View<Policy>& lock, std::uint32_t slot, const Plan& plan) {
  bool hears_of_deaths = plan.killed == first_local && plan.mistake != Mistake::owner_does_not_look_after_a_death;
  for (;;) {
    forget_all_but({slot, hears_of_deaths});
    // Acquire: a key with a granter's new ring brings its grant along.
    const std::uint32_t key = shared.bell.load(std::memory_order_acquire);
    if (lock.has_been_granted(slot)) return;
    const WaitResult result = Policy::wait(shared.bell, key, hears_of_deaths ? 1 : 0);
    if (result != WaitResult::timed_out || !ExplorerKnowsTheDead{}(plan.killed)) continue;
    hears_of_deaths = false;
    lock.mend(owner);
    if (!lock.has_been_granted(slot)) remove_the_dead(lock, plan.killed, owner);
  }
}

template <class Policy>
void locks_for_the_other(Shared<Policy>& shared, const Plan& plan) {
  View<Policy> lock(shared.lock, capacity);
  const LockMode mode = plan.of_other;
  const std::uint32_t enters_as = plan.mistake == Mistake::owner_enters_as_the_other ? other : owner;
  Requested requested = lock.request(enters_as, other, mode);
  while (requested.kind == Requested::Kind::busy) {
    Policy::yield();
    forget_all_but({1});
    requested = lock.request(enters_as, other, mode);
  }
  require(requested.kind != Requested::Kind::full, "no slot");
  if (requested.kind == Requested::Kind::queued) {
    if (plan.withdraws) {
      std::optional<bool> withdrawn = lock.withdraw(enters_as, requested.slot);
      for (; !withdrawn; withdrawn = lock.withdraw(enters_as, requested.slot)) Policy::yield();
      if (*withdrawn) return;
      require(lock.has_been_granted(requested.slot), "neither withdrawn nor granted");
    } else {
      await_grant(shared, lock, requested.slot, plan);
    }
  }
  touch<Policy>(shared.data, mode);
  std::optional<bool> held = lock.give_back(enters_as, other, mode);
  for (; !held; held = lock.give_back(enters_as, other, mode)) {
    Policy::yield();
    forget_all_but({2});
  }
  require(*held, "not held when given back");
}

template <class Policy>
void require_free_once_the_dead_is_removed(Shared<Policy>& shared, const Plan& plan) {
  constexpr std::uint32_t last = 10;
  View<Policy> lock(shared.lock, capacity);
  if (Explorer::current->was_killed()) {
    const std::uint32_t inside = lock.guard_holder();
    if (inside != 0 && inside != plan.killed) {
      return Explorer::current->fail("the guard is left with somebody who is not known to be dead");
    }
    remove_the_dead(lock, plan.killed, last);
  }
  require(lock.try_lock(last, LockMode::exclusive), "not free in the end");
}

template <class Policy = ModelAtomics<>>
Outcome run(const Plan& plan, std::size_t locals, std::size_t max_preemptions) {
  using State = Shared<Policy>;
  std::vector<std::function<void(State&)>> bodies{
      [=](State& s) { locks_for_itself<Policy>(s, first_local, plan); },
      [=](State& s) { locks_for_the_other<Policy>(s, plan); },
  };
  if (locals == 2) bodies.emplace_back([=](State& s) { locks_for_itself<Policy>(s, second_local, plan); });
  const std::size_t killable = plan.killed == 0 ? no_thread : plan.killed - 1;
  return explore<State>({.killable = killable, .max_preemptions = max_preemptions}, bodies,
                        [=](State& s) { require_free_once_the_dead_is_removed<Policy>(s, plan); });
}

constexpr std::size_t any = ~std::size_t{0};
constexpr LockMode x = LockMode::exclusive;
constexpr LockMode s = LockMode::shared;

TEST(SharedLockProxyModel, keeps_the_others_writer_from_local_ones_and_tells_of_its_grant) {
  expect_holds(run({}, 1, any));
  expect_holds(run({}, 2, 2));
}

// In make test-all: the explorer goes through all its states.
TEST(SharedLockProxyModel, lets_the_others_reader_in_beside_local_ones_and_keeps_writers_out) {
  expect_holds(run({.local = s, .of_other = s}, 2, 2));
  expect_holds(run({.local = x, .of_other = s}, 2, 2));
  expect_holds(run({.local = s, .of_other = x}, 2, 2));
}

TEST(SharedLockProxyModel, a_queued_request_is_withdrawn_or_was_granted) {
  expect_holds(run({.withdraws = true}, 1, any));
  expect_holds(run({.withdraws = true}, 2, 2));
}

TEST(SharedLockProxyModel, survives_a_granter_killed_anywhere) {
  expect_holds(run({.killed = first_local}, 1, 2));
  expect_holds(run({.killed = first_local}, 2, 1));
  expect_holds(run({.local = s, .killed = first_local}, 2, 1));
}

// In make test-all: the explorer goes through all its states.
TEST(SharedLockProxyModel, survives_an_owner_killed_anywhere) {
  expect_holds(run({.killed = owner}, 1, 2));
  expect_holds(run({.killed = owner}, 2, 1));
  expect_holds(run({.withdraws = true, .killed = owner}, 2, 1));
}

TEST(SharedLockProxyModel, catches_a_grant_that_nobody_tells_of) {
  expect_caught(run({.mistake = Mistake::granter_does_not_ring}, 1, any), "deadlock");
}

TEST(SharedLockProxyModel, catches_a_guard_entered_as_the_other) {
  expect_caught(run({.killed = owner, .mistake = Mistake::owner_enters_as_the_other}, 1, 2), "not known to be dead");
}

// A granter killed before it rings leaves a grant that only the notice of its death can tell of.
TEST(SharedLockProxyModel, catches_an_owner_that_does_not_look_after_a_death) {
  expect_caught(run({.killed = first_local, .mistake = Mistake::owner_does_not_look_after_a_death}, 1, any),
                "deadlock");
}

TEST(SharedLockProxyModel, catches_a_grant_that_orders_nothing) {
  expect_caught(run<ModelAtomics<Mutation::release_is_relaxed>>({}, 1, any), "race");
}

}  // namespace
}  // namespace farsum::model
