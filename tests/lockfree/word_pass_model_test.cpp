// Every interleaving of who updates an element by an atomic under a pass and who updates it in plain steps with the
// stripe closed, and of the death of either.
#include "lockfree/word_pass.hpp"

#include <type_traits>

#include "model_atomics.hpp"
#include "model_check.hpp"
#include "os/thread_mark.hpp"

namespace farsum::model {
namespace {

template <class Policy>
struct Shared {
  BasicStripeLock<Policy> stripe;
  BasicWordPass<Policy> passes[2];
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
auto passes_of(const Shared<Policy>& shared, bool may_wait) {
  return Passes{2, [&shared](std::uint32_t i) -> const BasicWordPass<Policy>& { return shared.passes[i]; },
                is_dead_rank<Policy>, may_wait};
}

// As core's take: a stripe that is open is closed, one that is held is waited for. False when its holder is dead.
template <class Policy>
bool take(Shared<Policy>& shared, std::uint32_t me) {
  for (;;) {
    if (shared.stripe.try_acquire(me)) return true;
    if (shared.stripe.is_open()) {
      if (close_stripe(shared.stripe, me, passes_of(shared, true)) == Closing::taken) return true;
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

// As the hot path: an atomic where the stripe is open, the lock where it is not; then the stripe is opened.
template <class Policy>
void add_as_single(Shared<Policy>& shared, std::uint32_t me) {
  BasicWordPass<Policy>& pass = shared.passes[me - 1];
  if (pass.enter(shared.stripe)) {
    shared.element.fetch_add(1, std::memory_order_acq_rel);
    pass.leave();
    return;
  }
  if (!take(shared, me)) return;
  add_in_plain_steps(shared);
  shared.stripe.release_open();
}

// As the agent: where somebody stays inside it goes away, and has added nothing.
template <class Policy>
bool try_add_as_bulk(Shared<Policy>& shared, std::uint32_t me) {
  if (!shared.stripe.try_acquire(me) && close_stripe(shared.stripe, me, passes_of(shared, false)) != Closing::taken) {
    return false;
  }
  add_in_plain_steps(shared);
  shared.stripe.release();
  return true;
}

template <class Policy>
Outcome single_beside_bulk(bool starts_open, std::uint32_t each, Options options = {}) {
  using State = Shared<Policy>;
  return explore<State>(options,
                        {[=](State& s) {
                           if (starts_open && s.stripe.try_acquire(1)) s.stripe.release_open();
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

TEST(WordPassModel, loses_no_update_beside_one_in_plain_steps) {
  expect_holds(single_beside_bulk<ModelAtomics<>>(true, 2));
}

TEST(WordPassModel, a_stripe_opens_beside_one_that_waits_for_it) {
  expect_holds(single_beside_bulk<ModelAtomics<Mutation::none, 1>>(false, 2));
  expect_caught(single_beside_bulk<ModelAtomics<Mutation::compare_exchange_is_torn, 1>>(false, 2), "lost");
}

template <class Policy>
Outcome two_that_close(std::uint32_t singles) {
  using State = Shared<Policy>;
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_open();
                           for (std::uint32_t i = 0; i < singles; ++i) add_as_single(s, 1);
                         },
                         [](State& s) { add_as_bulk(s, 2); }, [](State& s) { add_as_bulk(s, 3); }},
                        [=](State& s) { require(s.element.load(std::memory_order_relaxed) == singles + 2, "lost"); });
}

TEST(WordPassModel, two_close_a_stripe_at_once) {
  expect_holds(two_that_close<ModelAtomics<>>(1));
  expect_caught(two_that_close<ModelAtomics<Mutation::compare_exchange_is_torn>>(1), "race");
  expect_caught(two_that_close<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

// One that may not wait finds somebody inside, opens the stripe again and goes, beside one that closes it to stay.
template <class Policy>
Outcome impatient_beside_another(std::uint32_t singles) {
  struct State : Shared<Policy> {
    typename Policy::template Atomic<std::uint32_t> added;
  };
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_open();
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

TEST(WordPassModel, one_that_may_not_wait_leaves_the_stripe_open_and_adds_nothing) {
  expect_holds(impatient_beside_another<ModelAtomics<>>(1));
  expect_caught(impatient_beside_another<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

// A stripe that is closed together with another one, beside one that closes it alone.
template <class Policy>
Outcome stripes_closed_together(std::uint32_t singles) {
  struct State : Shared<Policy> {
    BasicStripeLock<Policy> before;
  };
  return explore<State>({.max_preemptions = 2, .finds_races = false},
                        {[=](State& s) {
                           if (s.before.try_acquire(1)) s.before.release_open();
                           if (s.stripe.try_acquire(1)) s.stripe.release_open();
                           for (std::uint32_t i = 0; i < singles; ++i) add_as_single(s, 1);
                         },
                         [](State& s) {
                           const auto stripe_at = [&s](std::uint32_t i) -> BasicStripeLock<Policy>& {
                             return i == 0 ? s.before : s.stripe;
                           };
                           close_stripes<Policy>(2, stripe_at, 2, passes_of(s, true));
                           add_as_bulk(s, 2);
                         },
                         [](State& s) { add_as_bulk(s, 3); }},
                        [=](State& s) {
                          require(s.element.load(std::memory_order_relaxed) == singles + 2, "an update is lost");
                          require(s.before.holder() == 0 && s.stripe.holder() == 0, "a stripe is left held");
                        });
}

TEST(WordPassModel, stripes_closed_together_lose_no_update) {
  expect_holds(stripes_closed_together<ModelAtomics<>>(1));
  expect_caught(stripes_closed_together<ModelAtomics<Mutation::process_barrier_is_lost>>(2), "lost");
}

TEST(WordPassModel, a_death_inside_does_not_keep_a_stripe_open) {
  expect_holds(single_beside_bulk<ModelAtomics<>>(true, 1, {.killable = 0}));
  expect_caught(single_beside_bulk<Unaware>(true, 1, {.killable = 0}), "livelock");
}

template <class Policy>
Outcome closer_that_dies() {
  using State = Shared<Policy>;
  return explore<State>({.killable = 1},
                        {[](State& s) {
                           if (s.stripe.try_acquire(1)) s.stripe.release_open();
                           add_as_single(s, 1);
                           if (take(s, 1))
                             s.stripe.release();
                           else
                             require(s.stripe.holder() == 2, "another one is named");
                         },
                         [](State& s) { add_as_bulk(s, 2); }},
                        [](State&) {});
}

TEST(WordPassModel, a_closer_that_dies_is_named_by_the_lock) {
  expect_holds(closer_that_dies<ModelAtomics<>>());
  expect_caught(closer_that_dies<Unaware>(), "livelock");
}

TEST(WordPassModel, catches_a_closer_without_its_barrier) {
  expect_caught(single_beside_bulk<ModelAtomics<Mutation::process_barrier_is_lost>>(true, 2), "lost");
}

TEST(WordPassModel, a_stripe_that_is_closed_again_and_again_opens_later) {
  StripeLock stripe{};
  const auto singles_until_open = [&] {
    int singles = 0;
    for (bool opened = false; !opened; ++singles) {
      EXPECT_TRUE(stripe.try_acquire(1));
      opened = stripe.count_single();
      opened ? stripe.release_open() : stripe.release();
    }
    EXPECT_TRUE(stripe.is_open());
    EXPECT_EQ(stripe.holder(), 0u);
    EXPECT_TRUE(stripe.try_close(2));
    stripe.release();
    return singles;
  };
  const int first = singles_until_open();
  EXPECT_EQ(singles_until_open(), 2 * first);
  for (int i = 0; i < 8; ++i) (void)singles_until_open();
  EXPECT_EQ(singles_until_open(), 16 * first);
}

TEST(WordPass, stays_with_the_first_thread_that_claims_it_until_that_has_ended) {
  WordPass pass{};
  const auto lives = [](std::uint64_t) { return false; };
  EXPECT_FALSE(pass.belongs_to(os::no_mark));
  EXPECT_TRUE(pass.claim(7, lives));
  EXPECT_TRUE(pass.claim(7, lives));
  EXPECT_FALSE(pass.claim(8, lives));
  EXPECT_TRUE(pass.belongs_to(7));
  EXPECT_TRUE(pass.claim(8, [](std::uint64_t thread) { return thread == 7; }));
  EXPECT_FALSE(pass.belongs_to(7));
  EXPECT_TRUE(pass.belongs_to(8));
  pass.make_ready();  // another process of the rank
  EXPECT_FALSE(pass.belongs_to(8));
  EXPECT_TRUE(pass.claim(9, lives));
}

}  // namespace
}  // namespace farsum::model
