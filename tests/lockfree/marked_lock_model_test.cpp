// Every interleaving of three that leave something to do and try for a lock: one at a time does it, and nothing is
// left.
#include "lockfree/marked_lock.hpp"

#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr std::size_t workers = 3;

template <class Policy>
struct Shared {
  BasicMarkedLock<Policy> lock;
  typename Policy::template Atomic<std::uint32_t> left[workers];
  std::uint32_t done[workers];  // under the lock
};

enum class Fault : std::uint8_t { none, lets_go_of_a_marked_lock };

template <class Policy>
void work(Shared<Policy>& shared) {
  Policy::writes(shared.done, sizeof shared.done);
  // Relaxed: the lock orders it.
  for (std::size_t i = 0; i < workers; ++i) shared.done[i] |= shared.left[i].load(std::memory_order_relaxed);
}

template <class Policy>
void leave_and_try(Shared<Policy>& shared, std::size_t me, Fault fault) {
  shared.left[me].store(1, std::memory_order_relaxed);
  if (!shared.lock.try_claim()) return;
  if (fault == Fault::lets_go_of_a_marked_lock) {
    work(shared);
    while (!shared.lock.release()) {
    }
    return;
  }
  do {
    work(shared);
  } while (!shared.lock.release());
}

template <class Policy>
Outcome all_try(Fault fault = Fault::none) {
  using State = Shared<Policy>;
  return explore<State>(
      {},
      {[fault](State& s) { leave_and_try(s, 0, fault); }, [fault](State& s) { leave_and_try(s, 1, fault); },
       [fault](State& s) { leave_and_try(s, 2, fault); }},
      [](State& s) {
        for (const std::uint32_t done : s.done) require(done == 1, "something is left undone");
        require(s.lock.try_claim(), "it is held for good");
      });
}

TEST(MarkedLockModel, leaves_nothing_undone) { expect_holds(all_try<ModelAtomics<>>()); }

TEST(MarkedLockModel, catches_a_holder_that_lets_go_of_a_marked_lock) {
  expect_caught(all_try<ModelAtomics<>>(Fault::lets_go_of_a_marked_lock), "something is left undone");
}

TEST(MarkedLockModel, catches_a_claim_that_is_not_atomic) {
  EXPECT_NE(all_try<ModelAtomics<Mutation::compare_exchange_is_torn>>().failure, "");
}

TEST(MarkedLockModel, catches_a_release_that_orders_nothing) {
  EXPECT_NE(all_try<ModelAtomics<Mutation::release_is_relaxed>>().failure, "");
}

TEST(MarkedLockModel, catches_a_mark_that_is_taken_off_by_a_plain_store) {
  EXPECT_NE(all_try<ModelAtomics<Mutation::exchange_is_a_store>>().failure, "");
}

}  // namespace
}  // namespace farsum::model
