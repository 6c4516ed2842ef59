// Every interleaving of who updates an element by an atomic under a permit and who updates it in plain steps with the
// stripe revoked, and of the death of either.
#include "lockfree/lock_free_permit.hpp"

#include <type_traits>

#include "model_atomics.hpp"
#include "model_check.hpp"
#include "os/thread_mark.hpp"

namespace farsum::model {
namespace {

template <class Policy>
struct Shared {
  BasicStripeLock<Policy> stripe;
  BasicLockFreePermit<Policy> permits[2];
  typename Policy::template Atomic<std::uint32_t> element;
};

// Its threads learn of no death.
struct Unaware : ModelAtomics<> {};

template <class Policy>
bool is_dead_rank(std::uint32_t rank) {
  return !std::is_same_v<Policy, Unaware> && Explorer::current->is_dead(rank);
}
template <class Policy>
bool is_dead_id(std::uint32_t holder) {
  return is_dead_rank<Policy>(holder - 1);
}

// A load and a store: whatever comes between them is lost. Relaxed, for the lock is to order it.
template <class Policy>
void add_in_plain_steps(Shared<Policy>& shared) {
  shared.element.store(shared.element.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

template <class Policy>
auto permits_of(const Shared<Policy>& shared, bool may_wait) {
  return Permits{2, [&shared](std::uint32_t i) -> const BasicLockFreePermit<Policy>& { return shared.permits[i]; },
                 is_dead_rank<Policy>, may_wait};
}

// As take_stripe(): a stripe that is lock-free is revoked, one that is held is waited for. False when its holder is
// dead.
template <class Policy>
bool take(Shared<Policy>& shared, std::uint32_t me) {
  for (;;) {
    if (shared.stripe.try_acquire(me)) return true;
    if (shared.stripe.is_lock_free()) {
      if (revoke_stripe(shared.stripe, me, permits_of(shared, true)) == Revocation::taken) return true;
      continue;
    }
    if (shared.stripe.acquire_slow(me, is_dead_id<Policy>)) return true;
    const std::uint32_t holder = shared.stripe.holder();
    if (holder != 0 && is_dead_id<Policy>(holder)) return false;
  }
}

template <class Policy>
void add_as_bulk(Shared<Policy>& shared, std::uint32_t me) {
  if (!take(shared, me)) return;
  add_in_plain_steps(shared);
  shared.stripe.release();
}

// As the hot path: an atomic where the stripe is lock-free, the lock where it is not; then the stripe becomes
// lock-free.
template <class Policy>
void add_as_single(Shared<Policy>& shared, std::uint32_t me) {
  BasicLockFreePermit<Policy>& permit = shared.permits[me - 1];
  if (permit.enter(shared.stripe)) {
    shared.element.fetch_add(1, std::memory_order_acq_rel);
    permit.leave();
    return;
  }
  if (!take(shared, me)) return;
  add_in_plain_steps(shared);
  shared.stripe.release_lock_free();
}

// As the agent: where somebody stays inside it goes away, and has added nothing.
template <class Policy>
bool try_add_as_bulk(Shared<Policy>& shared, std::uint32_t me) {
  if (!shared.stripe.try_acquire(me) &&
      revoke_stripe(shared.stripe, me, permits_of(shared, false)) != Revocation::taken) {
    return false;
  }
  add_in_plain_steps(shared);
  shared.stripe.release();
  return true;
}

template <class Policy>
Outcome single_beside_bulk(bool starts_lock_free, std::uint32_t each, Options options = {}) {
  using State = Shared<Policy>;
  return explore<State>(options,
                        {[=](State& s) {
                           if (starts_lock_free && s.stripe.try_acquire(1)) s.stripe.release_lock_free();
                           for (std::uint32_t i = 0; i < each; ++i) add_as_single(s, 1);
                         },
                         [=](State& s) {
                           for (std::uint32_t i = 0; i < each; ++i) add_as_bulk(s, 2);
                         }},
                        [=](State& s) {
                          const std::uint32_t sum = s.element.load(std::memory_order_relaxed);
                          const bool killed = Explorer::current->was_killed();
                          // Whoever was killed holding the lock keeps the others out, and they say so.
                          if (killed && s.stripe.holder() == options.killable + 1) return;
                          const std::uint32_t dead = killed ? each : 0;
                          require(sum <= 2 * each && sum + dead >= 2 * each, "an update is lost");
                        });
}

// Takes seconds: the explorer goes through all its states.
TEST(LockFreePermitModel, loses_no_update_beside_one_in_plain_steps) {
  expect_holds(single_beside_bulk<ModelAtomics<>>(true, 2));
}

TEST(LockFreePermitModel, a_stripe_becomes_lock_free_beside_one_that_waits_for_it) {
  expect_holds(single_beside_bulk<ModelAtomics<Mutation::none, 1>>(false, 2));
  expect_caught(single_beside_bulk<ModelAtomics<Mutation::compare_exchange_is_torn, 1>>(false, 2), "lost");
}

template <class Policy>
Outcome two_that_revoke(std::uint32_t singles) {
  using State = Shared<Policy>;
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_lock_free();
                           for (std::uint32_t i = 0; i < singles; ++i) add_as_single(s, 1);
                         },
                         [](State& s) { add_as_bulk(s, 2); }, [](State& s) { add_as_bulk(s, 3); }},
                        [=](State& s) { require(s.element.load(std::memory_order_relaxed) == singles + 2, "lost"); });
}

// Takes seconds: the explorer goes through all its states.
TEST(LockFreePermitModel, two_revoke_a_stripe_at_once) {
  expect_holds(two_that_revoke<ModelAtomics<>>(1));
  expect_caught(two_that_revoke<ModelAtomics<Mutation::compare_exchange_is_torn>>(1), "race");
  expect_caught(two_that_revoke<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

// One that may not wait finds somebody inside, leaves the stripe lock-free again and goes, beside one that revokes it
// to stay.
template <class Policy>
Outcome impatient_beside_another(std::uint32_t singles) {
  struct State : Shared<Policy> {
    typename Policy::template Atomic<std::uint32_t> added;
  };
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_lock_free();
                           for (std::uint32_t i = 0; i < singles; ++i) add_as_single(s, 1);
                         },
                         [](State& s) {
                           if (try_add_as_bulk(s, 2)) s.added.store(1, std::memory_order_relaxed);
                         },
                         [](State& s) { add_as_bulk(s, 3); }},
                        [=](State& s) {
                          const std::uint32_t sum = s.element.load(std::memory_order_relaxed);
                          require(sum == singles + 1 + s.added.load(std::memory_order_relaxed), "an update is lost");
                          require(s.stripe.holder() == 0, "the stripe is left held");
                        });
}

// In make test-all: the explorer goes through all its states.
TEST(LockFreePermitModel, one_that_may_not_wait_leaves_the_stripe_lock_free_and_adds_nothing) {
  expect_holds(impatient_beside_another<ModelAtomics<>>(1));
  expect_caught(impatient_beside_another<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

// A stripe that is revoked together with another one, beside one that revokes it alone.
template <class Policy>
Outcome stripes_revoked_together(std::uint32_t singles) {
  struct State : Shared<Policy> {
    BasicStripeLock<Policy> before;
  };
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.before.try_acquire(1)) s.before.release_lock_free();
                           if (s.stripe.try_acquire(1)) s.stripe.release_lock_free();
                           for (std::uint32_t i = 0; i < singles; ++i) add_as_single(s, 1);
                         },
                         [](State& s) {
                           const auto stripe_at = [&s](std::uint32_t i) -> BasicStripeLock<Policy>& {
                             return i == 0 ? s.before : s.stripe;
                           };
                           revoke_stripes<Policy>(2, stripe_at, 2, permits_of(s, true));
                           add_as_bulk(s, 2);
                         },
                         [](State& s) { add_as_bulk(s, 3); }},
                        [=](State& s) {
                          require(s.element.load(std::memory_order_relaxed) == singles + 2, "an update is lost");
                          require(s.before.holder() == 0 && s.stripe.holder() == 0, "a stripe is left held");
                        });
}

// In make test-all: the explorer goes through all its states.
TEST(LockFreePermitModel, stripes_revoked_together_lose_no_update) {
  expect_holds(stripes_revoked_together<ModelAtomics<>>(1));
  expect_caught(stripes_revoked_together<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

TEST(LockFreePermitModel, a_death_inside_does_not_keep_a_stripe_lock_free) {
  expect_holds(single_beside_bulk<ModelAtomics<>>(true, 1, {.killable = 0}));
  expect_caught(single_beside_bulk<Unaware>(true, 1, {.killable = 0}), "livelock");
}

template <class Policy>
Outcome revoker_that_dies() {
  using State = Shared<Policy>;
  return explore<State>({.killable = 1},
                        {[](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_lock_free();
                           add_as_single(s, 1);
                           if (take(s, 1))
                             s.stripe.release();
                           else
                             require(s.stripe.holder() == 2, "another one is named");
                         },
                         [](State& s) { add_as_bulk(s, 2); }},
                        [](State&) {});
}

TEST(LockFreePermitModel, a_revoker_that_dies_is_named_by_the_lock) {
  expect_holds(revoker_that_dies<ModelAtomics<>>());
  expect_caught(revoker_that_dies<Unaware>(), "livelock");
}

TEST(LockFreePermitModel, catches_a_revoker_without_its_barrier) {
  expect_caught(single_beside_bulk<ModelAtomics<Mutation::process_barrier_is_lost>>(true, 2), "lost");
}

TEST(LockFreePermitModel, a_stripe_that_is_revoked_again_and_again_becomes_lock_free_later) {
  StripeLock stripe{};
  const auto singles_until_lock_free = [&] {
    int singles = 0;
    for (bool is_lock_free = false; !is_lock_free; ++singles) {
      EXPECT_TRUE(stripe.try_acquire(1));
      is_lock_free = stripe.count_single();
      is_lock_free ? stripe.release_lock_free() : stripe.release();
    }
    EXPECT_TRUE(stripe.is_lock_free());
    EXPECT_EQ(stripe.holder(), 0u);
    EXPECT_TRUE(stripe.try_revoke(2));
    stripe.release();
    return singles;
  };
  const int first = singles_until_lock_free();
  EXPECT_EQ(singles_until_lock_free(), 2 * first);
  for (int i = 0; i < 8; ++i) (void)singles_until_lock_free();
  EXPECT_EQ(singles_until_lock_free(), 16 * first);
}

TEST(LockFreePermit, stays_with_the_first_thread_that_claims_it_until_that_has_ended) {
  LockFreePermit permit{};
  const auto lives = [](std::uint64_t) { return false; };
  EXPECT_FALSE(permit.belongs_to(os::no_mark));
  EXPECT_TRUE(permit.claim(7, lives));
  EXPECT_TRUE(permit.claim(7, lives));
  EXPECT_FALSE(permit.claim(8, lives));
  EXPECT_TRUE(permit.belongs_to(7));
  EXPECT_TRUE(permit.claim(8, [](std::uint64_t thread) { return thread == 7; }));
  EXPECT_FALSE(permit.belongs_to(7));
  EXPECT_TRUE(permit.belongs_to(8));
  permit.make_ready();  // another process of the rank
  EXPECT_FALSE(permit.belongs_to(8));
  EXPECT_TRUE(permit.claim(9, lives));
}

}  // namespace
}  // namespace farsum::model
