// Every interleaving of three who want one stripe lock, and of the death of one of them.
#include "lockfree/stripe_lock.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

template <class Policy>
struct Shared {
  BasicStripeLock<Policy> lock;
  std::uint32_t inside;
  std::uint32_t times;
};

bool is_dead(std::uint32_t holder) { return Explorer::current->is_dead(holder - 1); }

// Plain data under the lock: a race is two inside at once, or one that does not see what the last one wrote.
template <class Policy>
void enter_once(Shared<Policy>& shared, std::uint32_t me) {
  while (!shared.lock.acquire(me, is_dead)) {
    const std::uint32_t holder = shared.lock.holder();
    if (holder != 0 && is_dead(holder) && shared.lock.break_dead(holder, me)) {
      break;
    }
  }
  Policy::writes(&shared.inside, sizeof(shared.inside) + sizeof(shared.times));
  ++shared.times;
  shared.lock.release();
}

template <class Policy>
Outcome three_enter(std::size_t killable = no_thread) {
  using State = Shared<Policy>;
  return explore<State>(
      {.killable = killable},
      {[](State& s) { enter_once(s, 1); }, [](State& s) { enter_once(s, 2); }, [](State& s) { enter_once(s, 3); }},
      [](State& s) {
        require(s.times == 3 || (Explorer::current->was_killed() && s.times == 2), "somebody did not get in");
        require(s.lock.holder() == 0 || (s.lock.holder() == 1 && Explorer::current->was_killed()), "not released");
      });
}

TEST(StripeLockModel, lets_one_in_at_a_time) { expect_holds(three_enter<ModelAtomics<Mutation::none, 1>>()); }

TEST(StripeLockModel, is_recovered_from_a_holder_killed_anywhere) { expect_holds(three_enter<ModelAtomics<>>(0)); }

TEST(StripeLockModel, leaves_a_dead_holder_named) {
  using State = Shared<ModelAtomics<>>;
  const Options options{.killable = 0};
  expect_holds(explore<State>(options,
                              {[](State& s) { enter_once(s, 1); },
                               [](State& s) {
                                 if (s.lock.acquire(2, is_dead)) {
                                   s.lock.release();
                                   return;
                                 }
                                 require(is_dead(1) && s.lock.holder() == 1, "gave up although the holder lives");
                               }},
                              [](State&) {}));
}

TEST(StripeLockModel, catches_an_acquire_that_is_not_atomic) {
  expect_caught(three_enter<ModelAtomics<Mutation::compare_exchange_is_torn>>(), "race");
}

TEST(StripeLockModel, catches_a_release_that_orders_nothing) {
  expect_caught(three_enter<ModelAtomics<Mutation::release_is_relaxed>>(), "race");
}

}  // namespace
}  // namespace farsum::model
