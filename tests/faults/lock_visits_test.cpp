// How often each call of locks visits the guard of a lock in shared memory, counted by running a rank through the call
// instruction by instruction; and what becomes of ranks that are stopped in the middle of locking all.
#include <sched.h>

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "capi/global.hpp"
#include "job.hpp"
#include "lockfree/shared_lock.hpp"
#include "stepper.hpp"

namespace farsum::faults {
namespace {

// In Control::words.
constexpr std::size_t first_lock = 0;     // its place in the node's memory
constexpr std::size_t between_locks = 1;  // of one target and the next
constexpr std::size_t turn = 2;           // how many of its calls the stepped rank may make
constexpr std::size_t asked = 3;          // how often rank 0 is to lock, and unlock
constexpr std::size_t done = 4;           // and has

void await(const std::atomic<std::uint64_t>& word, std::uint64_t least) {
  while (word.load() < least) sched_yield();
}

farsum_window make_window(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  if (!self.ok(self.init()) || !self.ok(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window)))
    return {};
  const auto& shared = capi::find_window(window)->object->window->parts().shared;
  NodeSegment& segment = capi::live_context()->segment();
  self.control->words[first_lock] = segment.offset_of(&shared[0].lock());
  self.control->words[between_locks] = segment.offset_of(&shared[1].lock()) - segment.offset_of(&shared[0].lock());
  return window;
}

int leave(const Rank& self, farsum_window window) {
  const bool good =
      self.ok(farsum_barrier(farsum_world())) && self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize());
  return good ? 0 : 1;
}

// The locks of a window, as the test sees them.
class Locks {
 public:
  explicit Locks(Job& job) : job_(job), targets_(static_cast<std::uint32_t>(job.size())) {
    for (std::uint32_t target = 0; target < targets_; ++target) {
      const std::uint64_t at = job.control().words[first_lock] + target * job.control().words[between_locks];
      const std::uint64_t bytes = SharedLockState::footprint(targets_);
      if (!job.segment().reach({at, bytes}).is_ok()) std::abort();
      states_.push_back(reinterpret_cast<SharedLockState*>(job.segment().at(at)));
    }
  }
  bool has_guard(std::uint32_t target, std::uint32_t rank) const { return states_[target]->guard.holder() == rank + 1; }
  bool waits(std::uint32_t target, std::uint32_t rank) const { return is(target, rank, 1); }
  bool holds_shared(std::uint32_t target, std::uint32_t rank) const { return is(target, rank, 2); }

 private:
  bool is(std::uint32_t target, std::uint32_t rank, std::uint32_t state) const {
    const BasicLockSlots<SystemAtomics> slots(states_[target]->slots(), targets_);
    for (std::uint32_t slot = 0; slot < targets_; ++slot) {
      if (slots[slot].id == rank + 1 && slots[slot].state == state) return true;
    }
    return false;
  }

  Job& job_;
  std::uint32_t targets_;
  std::vector<SharedLockState*> states_;
};

// ---- counts ----

constexpr std::uint32_t stepped = 1;

enum class Call : std::uint8_t { lock, unlock, lock_all, unlock_all };

// What the stepped rank does: some by itself, before it is stepped, and then call by call as it is told.
struct Plan {
  int offers_awaited = 0;  // lock_alls by itself, once it has ended the bias
  std::vector<Call> calls;
  std::uint32_t times_asked = 0;  // what rank 0 is asked for, lock and unlock in turn
};

farsum_status make(Call call, farsum_window window) {
  switch (call) {
    case Call::lock:
      return farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE);
    case Call::unlock:
      return farsum_unlock(window, 0);
    case Call::lock_all:
      return farsum_lock_all(window);
    case Call::unlock_all:
      break;
  }
  return farsum_unlock_all(window);
}

bool lock_all_by_itself(const Rank& self, farsum_window window, int times) {
  if (times == 0) return true;
  if (!self.ok(make(Call::lock, window)) || !self.ok(make(Call::unlock, window))) return false;
  for (int time = 0; time < times; ++time) {
    if (!self.ok(make(Call::lock_all, window)) || !self.ok(make(Call::unlock_all, window))) return false;
  }
  return true;
}

int call_as_told(const Rank& self, const Plan& plan) {
  farsum_window window = make_window(self);
  if (window.bits == 0 || !self.ok(farsum_barrier(farsum_world()))) return 1;
  auto& words = self.control->words;
  if (self.rank == stepped && !lock_all_by_itself(self, window, plan.offers_awaited)) return 1;
  self.words().ready = 1;
  if (self.rank == stepped) {
    for (std::uint32_t call = 0; call < plan.calls.size(); ++call) {
      await(words[turn], call + 1);
      self.words().rounds = 2 * call + 1;
      if (!self.ok(make(plan.calls[call], window))) return 1;
      self.words().rounds = 2 * call + 2;
    }
  } else if (self.rank == 0) {
    for (std::uint32_t time = 1; time <= plan.times_asked; ++time) {
      await(words[asked], time);
      if (!self.ok(make(time % 2 == 1 ? Call::lock : Call::unlock, window))) return 1;
      words[done] = time;
    }
  }
  return leave(self, window);
}

class Visits {
 public:
  explicit Visits(Job& job) : job_(job), locks_(job), targets_(static_cast<std::uint32_t>(job.size())) {}

  // Of the next call; `queued` runs once it waits for rank 0's lock.
  std::uint32_t of_next_call(
      Stepper& stepper, const std::function<void()>& queued = [] {}) {
    std::vector<bool> was_inside(targets_);
    std::uint32_t visits = 0;
    bool has_queued = false;
    const std::uint64_t end = 2 * ++calls_;
    job_.control().words[turn] = calls_;
    const bool ended = stepper.step_until([&] {
      if (job_.words(stepped).rounds < end - 1) return false;
      for (std::uint32_t target = 0; target < targets_; ++target) {
        const bool is_inside = locks_.has_guard(target, stepped);
        visits += is_inside && !was_inside[target] ? 1 : 0;
        was_inside[target] = is_inside;
      }
      if (!has_queued && locks_.waits(0, stepped)) {
        has_queued = true;
        queued();
      }
      return job_.words(stepped).rounds >= end;
    });
    EXPECT_TRUE(ended) << job_.words(stepped).text.data();
    return visits;
  }
  // With rank 0's exclusive lock in the way, which it gives back when the call waits for it.
  std::uint32_t behind_a_holder(Stepper& stepper) {
    ask();
    await(job_.control().words[done], asked_);
    return of_next_call(stepper, [this] { ask(); });
  }
  // With rank 0 waiting for what the call gives back.
  std::uint32_t before_a_waiter(Stepper& stepper) {
    ask();
    EXPECT_TRUE(job_.wait_for([&] { return locks_.waits(0, 0); }));
    const std::uint32_t visits = of_next_call(stepper, [] {});
    await(job_.control().words[done], asked_);
    ask();
    return visits;
  }

 private:
  void ask() { job_.control().words[asked] = ++asked_; }

  Job& job_;
  Locks locks_;
  std::uint32_t targets_;
  std::uint32_t calls_ = 0;
  std::uint64_t asked_ = 0;
};

class GuardVisits : public testing::TestWithParam<int> {
 protected:
  GuardVisits() : job_(of_ranks(GetParam())), ranks_(static_cast<std::uint32_t>(GetParam())) {}

  // check(visits, stepper) with the ranks on their way; all end well.
  template <class Check>
  void follow(const Plan& plan, Check&& check) {
    job_.start([plan](const Rank& self) { return call_as_told(self, plan); });
    ASSERT_TRUE(job_.wait_for([&] { return job_.words(stepped).ready && job_.words(0).ready; }))
        << job_.words(stepped).text.data();
    {
      Visits visits(job_);
      Stepper stepper(job_.pid(stepped), true);
      if (!stepper.attached()) GTEST_SKIP() << "the kernel refuses to trace the ranks here";
      check(visits, stepper);
    }
    for (int rank = 0; rank < job_.size(); ++rank)
      EXPECT_EQ(job_.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job_.words(rank).text.data();
  }

  static JobOptions of_ranks(int ranks) {
    JobOptions options;
    options.ranks = ranks;
    return options;
  }

  Job job_;
  std::uint32_t ranks_;
};

using enum Call;

// In make test-all (*/64): 64 ranks.
TEST_P(GuardVisits, are_none_for_all_locks_until_one_is_taken_exclusively_and_then_one_a_target) {
  const Plan plan{.calls = {lock_all, unlock_all, lock, unlock, lock, unlock, lock_all, unlock_all, lock, unlock,
                            lock_all, unlock_all},
                  .times_asked = 8};
  follow(plan, [&](Visits& visits, Stepper& stepper) {
    EXPECT_EQ(visits.of_next_call(stepper), 0U) << "lock_all";
    EXPECT_EQ(visits.of_next_call(stepper), 0U) << "unlock_all";
    EXPECT_EQ(visits.of_next_call(stepper), 2U) << "lock that ends the bias";
    EXPECT_EQ(visits.of_next_call(stepper), 1U) << "unlock";
    EXPECT_EQ(visits.of_next_call(stepper), 1U) << "lock";
    EXPECT_EQ(visits.of_next_call(stepper), 1U) << "unlock";
    EXPECT_EQ(visits.of_next_call(stepper), ranks_) << "lock_all";
    EXPECT_EQ(visits.of_next_call(stepper), ranks_) << "unlock_all";
    EXPECT_EQ(visits.behind_a_holder(stepper), 1U) << "lock that queues";
    EXPECT_EQ(visits.before_a_waiter(stepper), 1U) << "unlock that hands over";
    // What it has got, it gives back and takes again.
    EXPECT_LE(visits.behind_a_holder(stepper), 3 * ranks_) << "lock_all that queues";
    EXPECT_EQ(visits.before_a_waiter(stepper), ranks_) << "unlock_all that hands over";
  });
}

// In make test-all (*/64): 64 ranks.
TEST_P(GuardVisits, are_none_again_once_no_lock_was_exclusive_for_a_while) {
  constexpr int until_an_offer = 64;
  const Plan plan{.offers_awaited = until_an_offer - 1,
                  .calls = {lock_all, unlock_all, lock_all, unlock_all, lock_all, unlock_all},
                  .times_asked = 2};
  follow(plan, [&](Visits& visits, Stepper& stepper) {
    EXPECT_EQ(visits.of_next_call(stepper), 2 * ranks_) << "lock_all that makes the offer";
    EXPECT_EQ(visits.of_next_call(stepper), ranks_) << "unlock_all";
    EXPECT_EQ(visits.of_next_call(stepper), 0U) << "lock_all";
    EXPECT_EQ(visits.of_next_call(stepper), 0U) << "unlock_all";
    EXPECT_EQ(visits.of_next_call(stepper), 0U) << "lock_all";
    EXPECT_EQ(visits.before_a_waiter(stepper), ranks_) << "unlock_all of one that was entered";
  });
}

INSTANTIATE_TEST_SUITE_P(By, GuardVisits, testing::Values(2, 16, 64), testing::PrintToStringParamName());

// ---- locking all ----

// Ranks 0 and 1 lock all, 2 and 3 lock one each, once they may.
int lock_all_or_one(const Rank& self) {
  farsum_window window = make_window(self);
  if (window.bits == 0) return 1;
  // All are taken one by one from here on.
  if (self.rank == 0 && (!self.ok(make(Call::lock, window)) || !self.ok(make(Call::unlock, window)))) return 1;
  if (!self.ok(farsum_barrier(farsum_world()))) return 1;
  self.words().ready = 1;
  await(self.control->words[turn], self.rank < 2 ? 1 : 2);
  if (self.rank < 2) {
    if (!self.ok(farsum_lock_all(window)) || !self.ok(farsum_unlock_all(window))) return 1;
  } else {
    const int target = 3 - self.rank;
    if (!self.ok(farsum_lock(window, target, FARSUM_LOCK_EXCLUSIVE)) || !self.ok(farsum_unlock(window, target)))
      return 1;
  }
  return leave(self, window);
}

// Each of the two holds its own target's lock only, and wants the other's, for which a writer waits already. Whoever
// queued there with its own lock in hand would wait for ever.
TEST(LockAll, of_two_ranks_that_begin_at_their_own_with_writers_between_comes_to_an_end) {
  JobOptions options;
  options.ranks = 4;
  Job job(options);
  job.start(lock_all_or_one);
  ASSERT_TRUE(job.wait_for(
      [&] { return job.words(0).ready && job.words(1).ready && job.words(2).ready && job.words(3).ready; }));
  {
    const Locks locks(job);
    Stepper first(job.pid(0), true);
    Stepper second(job.pid(1), true);
    if (!first.attached() || !second.attached()) GTEST_SKIP() << "the kernel refuses to trace the ranks here";
    job.control().words[turn] = 1;
    // Out of the guard, too, so that others come in.
    ASSERT_TRUE(first.step_until([&] { return locks.holds_shared(0, 0) && !locks.has_guard(0, 0); }));
    ASSERT_TRUE(second.step_until([&] { return locks.holds_shared(1, 1) && !locks.has_guard(1, 1); }));
    job.control().words[turn] = 2;
    ASSERT_TRUE(job.wait_for([&] { return locks.waits(1, 2) && locks.waits(0, 3); }));
  }
  for (int rank = 0; rank < job.size(); ++rank)
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job.words(rank).text.data();
}

}  // namespace
}  // namespace farsum::faults
