// The same templates with real threads, for the thread sanitizer and for what the model leaves out: the kernel's
// futexes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "lockfree/doorbell.hpp"
#include "lockfree/lock_bias.hpp"
#include "lockfree/ring.hpp"
#include "lockfree/shared_lock.hpp"
#include "lockfree/stripe_lock.hpp"
#include "os/event_count.hpp"

namespace farsum {
namespace {

constexpr std::size_t ring_capacity = 4096;
constexpr std::uint64_t records_per_sender = 20'000;
constexpr std::uint32_t senders = 3;

struct Channel {
  RingShared ring;
  std::byte storage[ring_capacity];
};

struct Node {
  Doorbell bell;
  EventCount replies;
  Channel channels[senders];
};

struct Reply {
  std::uint64_t twice;
};

// Sends every number once, checks that each comes back doubled and in order.
void send_numbers(Node& node, std::uint32_t me) {
  RingSender sender(node.channels[me].ring, ring_capacity);
  std::uint64_t next = 0;
  while (sender.reaped() < records_per_sender) {
    while (next < records_per_sender) {
      const std::span<const std::byte> body(reinterpret_cast<const std::byte*>(&next), sizeof(next));
      const std::size_t spare = next % 61;
      if (!sender.try_push(body, {}, sizeof(Reply) + spare)) {
        break;
      }
      ++next;
      node.bell.ring(me);
    }
    const auto check = [&](std::uint64_t ticket, std::uint32_t, std::span<const std::byte> reply) {
      Reply got{};
      ASSERT_EQ(reply.size(), sizeof(got));
      std::memcpy(&got, reply.data(), sizeof(got));
      ASSERT_EQ(got.twice, 2 * ticket);
    };
    if (sender.reap(check) == 0) {
      const std::uint32_t key = node.replies.prepare();
      if (sender.oldest_done()) {
        node.replies.cancel();
      } else {
        node.replies.wait(key, 0);
      }
    }
  }
}

// Declines every 97th record once.
void serve_numbers(Node& node) {
  std::vector<RingReceiver> receivers;
  for (Channel& channel : node.channels) {
    receivers.emplace_back(channel.ring, ring_capacity);
  }
  std::uint64_t shown = 0;
  std::uint64_t served = 0;
  const auto answer = [&](std::span<const std::byte> message, std::span<std::byte> room) {
    if (++shown % 97 == 0) {
      return RecordAnswer{.kind = RecordAnswer::Kind::again};
    }
    std::uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof(number));
    const Reply reply{2 * number};
    std::memcpy(room.data(), &reply, sizeof(reply));
    return RecordAnswer{.reply_bytes = sizeof(reply)};
  };
  while (served < senders * records_per_sender) {
    const std::size_t rung = node.bell.collect([&](std::uint32_t sender) {
      served += receivers[sender].serve(answer, 16);
      if (receivers[sender].pending()) {
        node.bell.ring(sender);
      }
      node.replies.notify_all();
    });
    if (rung == 0) {
      node.bell.sleep(0);
    }
  }
}

TEST(ChannelStress, answers_every_record_of_several_senders_in_order) {
  const auto node = std::make_unique<Node>();
  std::thread receiver([&] { serve_numbers(*node); });
  std::vector<std::thread> threads;
  for (std::uint32_t me = 0; me < senders; ++me) {
    threads.emplace_back([&, me] { send_numbers(*node, me); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  receiver.join();
}

TEST(DoorbellStress, ends_a_sleep_by_wake_from_another_thread) {
  Doorbell bell{};
  std::thread receiver([&] {
    while (!bell.stopped()) {
      bell.sleep(0);
    }
  });
  bell.wake();
  receiver.join();
  EXPECT_TRUE(bell.sleep(0));
}

TEST(Doorbell, makes_no_system_call_while_the_receiver_is_awake) {
  Doorbell bell{};
  EXPECT_FALSE(bell.ring(0));
  EXPECT_FALSE(bell.ring(1023));
  EXPECT_TRUE(bell.anything());
  EXPECT_TRUE(bell.sleep(0));
  std::vector<std::uint32_t> rung;
  EXPECT_EQ(bell.collect([&](std::uint32_t sender) { rung.push_back(sender); }), 2U);
  EXPECT_EQ(rung, (std::vector<std::uint32_t>{0, 1023}));
  EXPECT_FALSE(bell.anything());
  EXPECT_FALSE(bell.sleep(1));
}

TEST(EventCount, makes_no_system_call_without_sleepers) {
  EventCount count{};
  EXPECT_FALSE(count.notify_all());
  const std::uint32_t key = count.prepare();
  EXPECT_TRUE(count.notify_all());
  EXPECT_TRUE(count.wait(key, 0));
  EXPECT_FALSE(count.notify_all());
  EXPECT_FALSE(count.wait(count.prepare(), 1));
}

TEST(StripeLockStress, counts_right_under_contention) {
  constexpr std::uint32_t threads_count = 4;
  constexpr std::uint64_t rounds = 50'000;
  struct {
    StripeLock lock;
    std::uint64_t count;
  } shared{};
  std::latch all_here(threads_count);
  std::vector<std::thread> threads;
  for (std::uint32_t me = 1; me <= threads_count; ++me) {
    threads.emplace_back([&, me] {
      all_here.arrive_and_wait();
      for (std::uint64_t i = 0; i < rounds; ++i) {
        ASSERT_TRUE(shared.lock.acquire(me, NobodyDies{}));
        ++shared.count;
        shared.lock.release();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(shared.count, threads_count * rounds);
}

TEST(StripeLock, gives_up_on_a_dead_holder_and_can_be_taken_from_it) {
  StripeLock lock{};
  ASSERT_TRUE(lock.try_acquire(7));
  EXPECT_FALSE(lock.try_acquire(8));
  EXPECT_FALSE(lock.acquire(8, [](std::uint32_t holder) { return holder == 7; }));
  EXPECT_EQ(lock.holder(), 7U);
  EXPECT_FALSE(lock.break_dead(6, 8));
  EXPECT_TRUE(lock.break_dead(7, 8));
  EXPECT_EQ(lock.holder(), 8U);
  lock.release();
  EXPECT_EQ(lock.holder(), 0U);
}

// ---- shared lock ----

class SharedLockMemory {
 public:
  explicit SharedLockMemory(std::uint32_t capacity)
      : memory_(SharedLockState::footprint(capacity) / sizeof(Line) + 1) {}
  SharedLockState& state() { return *reinterpret_cast<SharedLockState*>(memory_.data()); }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory_;
};

const auto sleep_at_once = [](LockGrant& grant) {
  if (grant.fall_asleep(LockGrant::WhenCalled::sleeps_on)) grant.sleep(0);
  return true;
};
// Looks for a while, sleeps, and looks again when it is called.
const auto look_and_sleep = [](LockGrant& grant) {
  for (int look = 0; look < 200; ++look) {
    if (grant.has_come()) return true;
    SystemAtomics::pause();
  }
  if (grant.fall_asleep()) grant.sleep(0);
  (void)grant.answer_call();
  return true;
};

// Half of the threads look before they sleep.
TEST(SharedLockStress, keeps_writers_from_readers_and_each_other) {
  constexpr std::uint32_t threads_count = 4;
  constexpr std::uint64_t rounds = 10'000;
  SharedLockMemory memory(threads_count);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::latch all_here(threads_count);
  std::vector<std::thread> threads;
  for (std::uint32_t me = 1; me <= threads_count; ++me) {
    threads.emplace_back([&, me] {
      SharedLock<> lock(memory.state(), threads_count);
      all_here.arrive_and_wait();
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const LockMode mode = (i + me) % 3 == 0 ? LockMode::exclusive : LockMode::shared;
        const LockResult how = me % 2 == 0 ? lock.lock(me, mode, sleep_at_once, lock_word::asleep_for_good)
                                           : lock.lock(me, mode, look_and_sleep);
        ASSERT_EQ(how, LockResult::acquired);
        ASSERT_EQ(first, second);
        if (mode == LockMode::exclusive) {
          ++first;
          ++second;
        }
        ASSERT_TRUE(lock.unlock(me, mode));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(SharedLock<>(memory.state(), threads_count).try_lock(9, LockMode::exclusive));
}

// Each waits its turn: between two turns of one thread every other that waits has one.
TEST(SharedLockStress, passes_nobody_over_more_than_once) {
  constexpr std::uint32_t threads_count = 3;
  constexpr std::uint32_t rounds = 2'000;
  SharedLockMemory memory(threads_count);
  std::atomic<std::uint32_t> waiting[threads_count + 1]{};
  std::uint32_t passed_over[threads_count + 1]{};
  std::uint32_t worst = 0;
  std::latch all_here(threads_count);
  std::vector<std::thread> threads;
  for (std::uint32_t me = 1; me <= threads_count; ++me) {
    threads.emplace_back([&, me] {
      SharedLock<> lock(memory.state(), threads_count);
      all_here.arrive_and_wait();
      for (std::uint32_t i = 0; i < rounds; ++i) {
        // Relaxed: ordered by the futex sleep itself; set by the wait below once this thread is in the queue.
        const auto wait = [&](LockGrant& grant) {
          waiting[me].store(1, std::memory_order_relaxed);
          return sleep_at_once(grant);
        };
        ASSERT_EQ(lock.lock(me, LockMode::exclusive, wait, lock_word::asleep_for_good), LockResult::acquired);
        waiting[me].store(0, std::memory_order_relaxed);
        passed_over[me] = 0;
        for (std::uint32_t other = 1; other <= threads_count; ++other) {
          if (other != me && waiting[other].load(std::memory_order_relaxed) != 0) {
            worst = std::max(worst, ++passed_over[other]);
          }
        }
        ASSERT_TRUE(lock.unlock(me, LockMode::exclusive));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // Everybody else once, and once more for a holder that had the lock when the waiter was first seen.
  EXPECT_LE(worst, threads_count);
}

class BiasMemory {
 public:
  explicit BiasMemory(std::uint32_t members) : memory_(LockBias::footprint(members) / sizeof(LockBiasState)) {}
  LockBias bias() { return {memory_.front(), static_cast<std::uint32_t>(memory_.size()) - 1}; }

 private:
  std::vector<LockBiasState> memory_;
};

// As a rank locks all that there is, which is one lock; every 16th time in the queue it makes an offer.
class LocksAll {
 public:
  LocksAll(SharedLock<>& lock, LockBias bias, std::uint32_t id) : lock_(lock), bias_(bias), who_(id, id - 1) {}

  template <class F>
  void hold(F&& f) {
    std::uint64_t epoch = 0;
    const LockBias::Hold how = bias_.hold(who_, epoch);
    if (how == LockBias::Hold::held) {
      f();
      ++held_by_bias_;
      if (!bias_.release(who_.place, epoch)) (void)lock_.unlock(who_, LockMode::shared);
      return;
    }
    if (how == LockBias::Hold::revoked) (void)lock_.unlock(who_, LockMode::shared);
    ASSERT_EQ(lock_.lock(who_, LockMode::shared, look_and_sleep), LockResult::acquired);
    f();
    if (++times_ % 16 == 0) offer();
    ASSERT_TRUE(lock_.unlock(who_, LockMode::shared));
  }
  std::uint64_t held_by_bias() const { return held_by_bias_; }

 private:
  void offer() {
    const std::optional<std::uint64_t> prepared = bias_.prepare();
    if (!prepared) return;
    if (lock_.allow_bias(who_.id))
      (void)bias_.confirm(*prepared);
    else
      bias_.give_up(*prepared);
  }

  SharedLock<>& lock_;
  LockBias bias_;
  Contender who_;
  std::uint32_t times_ = 0;
  std::uint64_t held_by_bias_ = 0;
};

TEST(LockBiasStress, keeps_writers_from_those_that_lock_all) {
  constexpr std::uint32_t threads_count = 3;
  constexpr std::uint64_t rounds = 200'000;
  SharedLockMemory memory(threads_count);
  BiasMemory members(threads_count);
  members.bias().begin();
  ASSERT_TRUE(LockQueue(memory.state().queue, memory.state().slots(), threads_count).allow_bias());
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::atomic<std::uint64_t> held_by_bias{0};
  std::latch all_here(threads_count);
  std::vector<std::thread> threads;
  for (std::uint32_t me = 1; me <= threads_count; ++me) {
    threads.emplace_back([&, me] {
      SharedLock<> lock(memory.state(), threads_count, {}, members.bias());
      LocksAll all(lock, members.bias(), me);
      all_here.arrive_and_wait();
      for (std::uint64_t i = 0; i < rounds; ++i) {
        if (i % 64 != me) {
          all.hold([&] { ASSERT_EQ(first, second); });
          continue;
        }
        ASSERT_EQ(lock.lock({me, me - 1}, LockMode::exclusive, look_and_sleep), LockResult::acquired);
        ++first;
        ++second;
        ASSERT_TRUE(lock.unlock({me, me - 1}, LockMode::exclusive));
      }
      held_by_bias.fetch_add(all.held_by_bias());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(held_by_bias.load(), 0U);
  EXPECT_EQ(first, threads_count * ((rounds + 63) / 64));
  EXPECT_TRUE(SharedLock<>(memory.state(), threads_count, {}, members.bias()).try_lock(9, LockMode::exclusive));
}

TEST(SharedLock, names_those_that_hold_it_by_bias) {
  SharedLockMemory memory(4);
  BiasMemory members(4);
  members.bias().begin();
  ASSERT_TRUE(LockQueue(memory.state().queue, memory.state().slots(), 4).allow_bias());
  SharedLock<> lock(memory.state(), 4, {}, members.bias());
  std::uint64_t epoch = 0;
  ASSERT_EQ(members.bias().hold({7, 2}, epoch), LockBias::Hold::held);
  const auto holders = [&] {
    std::vector<std::uint32_t> ids;
    lock.for_each_holder([&](std::uint32_t id, LockMode) { ids.push_back(id); });
    return ids;
  };
  EXPECT_EQ(holders(), std::vector<std::uint32_t>{7});
  EXPECT_FALSE(lock.try_lock({1, 0}, LockMode::exclusive));
  EXPECT_EQ(holders(), std::vector<std::uint32_t>{7}) << "entered, and named once";
  members.bias().remove_dead(2);
  EXPECT_TRUE(lock.remove_dead(7, 1));
  EXPECT_TRUE(lock.try_lock({1, 0}, LockMode::exclusive));
}

TEST(SharedLock, that_may_be_held_by_bias_is_not_taken_exclusively_by_who_does_not_know_the_bias) {
  SharedLockMemory memory(4);
  ASSERT_TRUE(LockQueue(memory.state().queue, memory.state().slots(), 4).allow_bias());
  SharedLock<> lock(memory.state(), 4);
  const auto yes = [] { return true; };
  EXPECT_EQ(lock.take_or_queue(1, LockMode::exclusive, lock_word::waiting, yes).kind, Requested::Kind::refused);
  EXPECT_EQ(lock.take_or_queue_once(1, LockMode::exclusive, lock_word::waiting, yes, [](Requested::Kind) {}).kind,
            Requested::Kind::refused);
  EXPECT_FALSE(lock.try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(lock.try_lock(1, LockMode::shared));
}

TEST(SharedLock, gives_up_when_the_wait_says_so_and_lets_others_pass) {
  SharedLockMemory memory(4);
  SharedLock<> lock(memory.state(), 4);
  ASSERT_TRUE(lock.try_lock(1, LockMode::shared));
  const auto never = [](LockGrant&) { return false; };
  EXPECT_EQ(lock.lock(2, LockMode::exclusive, never), LockResult::gave_up);
  EXPECT_TRUE(lock.try_lock(3, LockMode::shared));
  EXPECT_TRUE(lock.unlock(3, LockMode::shared));
  EXPECT_TRUE(lock.unlock(1, LockMode::shared));
  EXPECT_FALSE(lock.unlock(1, LockMode::shared));
}

TEST(SharedLock, is_acquired_when_it_was_granted_while_giving_up) {
  SharedLockMemory memory(4);
  SharedLock<> lock(memory.state(), 4);
  ASSERT_TRUE(lock.try_lock(1, LockMode::exclusive));
  const auto released_meanwhile = [&](LockGrant&) {
    EXPECT_TRUE(lock.unlock(1, LockMode::exclusive));
    return false;
  };
  EXPECT_EQ(lock.lock(2, LockMode::exclusive, released_meanwhile), LockResult::acquired);
  EXPECT_TRUE(lock.unlock(2, LockMode::exclusive));
}

TEST(SharedLock, says_full_when_there_is_no_slot) {
  SharedLockMemory memory(1);
  SharedLock<> lock(memory.state(), 1);
  ASSERT_TRUE(lock.try_lock(1, LockMode::shared));
  EXPECT_EQ(lock.lock(2, LockMode::shared, sleep_at_once), LockResult::full);
}

// ---- who is woken, and when ----

// Counts wakes, and whether any was made with the guard taken.
struct CountingAtomics : SystemAtomics {
  static inline std::uint32_t wakes = 0;
  static inline std::uint32_t wakes_under_guard = 0;
  static inline BasicHolderWord<CountingAtomics>* guard = nullptr;

  static int wake(std::atomic<std::uint32_t>&, int) {
    ++wakes;
    if (guard->holder() != 0) ++wakes_under_guard;
    return 0;
  }
};

class WakesOfSharedLock : public testing::Test {
 protected:
  static constexpr std::uint32_t capacity = 16;
  static constexpr std::uint32_t holder = 1;

  void SetUp() override {
    CountingAtomics::wakes = CountingAtomics::wakes_under_guard = 0;
    CountingAtomics::guard = &state().guard;
    ASSERT_TRUE(lock().try_lock(holder, LockMode::exclusive));
  }
  BasicSharedLockState<CountingAtomics>& state() {
    return reinterpret_cast<BasicSharedLockState<CountingAtomics>&>(memory_.state());
  }
  BasicSharedLock<CountingAtomics, NobodyDies> lock() { return {state(), capacity}; }

  // Lets ids from `first` to `last` wait, one inside the other's wait, and the holder unlock when all do.
  void unlock_before(std::uint32_t first, std::uint32_t last, LockMode mode, bool asleep) {
    if (first > last) {
      EXPECT_TRUE(lock().unlock(holder, LockMode::exclusive));
      return;
    }
    const auto wait = [&](BasicLockGrant<CountingAtomics>& grant) {
      if (asleep) {
        EXPECT_TRUE(grant.fall_asleep());
      }
      unlock_before(first + 1, last, mode, asleep);
      return true;
    };
    EXPECT_EQ(lock().lock(first, mode, wait), LockResult::acquired);
  }

 private:
  SharedLockMemory memory_{capacity};
};

TEST_F(WakesOfSharedLock, are_none_for_a_waiter_that_looks) {
  unlock_before(2, 2, LockMode::exclusive, false);
  EXPECT_EQ(CountingAtomics::wakes, 0U);
}

TEST_F(WakesOfSharedLock, are_one_for_a_sleeper_once_the_guard_is_left) {
  unlock_before(2, 2, LockMode::exclusive, true);
  EXPECT_EQ(CountingAtomics::wakes, 1U);
  EXPECT_EQ(CountingAtomics::wakes_under_guard, 0U);
}

TEST_F(WakesOfSharedLock, reach_all_readers_that_sleep_and_none_that_looks) {
  unlock_before(2, 11, LockMode::shared, false);
  EXPECT_EQ(CountingAtomics::wakes, 0U);
  for (std::uint32_t reader = 2; reader <= 11; ++reader) EXPECT_TRUE(lock().unlock(reader, LockMode::shared));
  ASSERT_TRUE(lock().try_lock(holder, LockMode::exclusive));
  unlock_before(2, 11, LockMode::shared, true);
  EXPECT_EQ(CountingAtomics::wakes, 10U);
}

TEST_F(WakesOfSharedLock, forget_who_gave_up_asleep) {
  const auto gives_up = [](BasicLockGrant<CountingAtomics>& grant) { return !grant.fall_asleep(); };
  EXPECT_EQ(lock().lock(2, LockMode::exclusive, gives_up), LockResult::gave_up);
  unlock_before(2, 2, LockMode::exclusive, false);
  EXPECT_EQ(CountingAtomics::wakes, 0U);
}

TEST(SharedLock, of_another_is_asked_for_and_given_back_without_waiting) {
  constexpr std::uint32_t owner = 1;
  constexpr std::uint32_t other = 9;
  SharedLockMemory memory(4);
  SharedLock<> lock(memory.state(), 4);
  ASSERT_TRUE(memory.state().guard.try_acquire(2));
  EXPECT_EQ(lock.request(owner, other, LockMode::exclusive).kind, Requested::Kind::busy);
  EXPECT_EQ(lock.give_back(owner, other, LockMode::exclusive), std::nullopt);
  EXPECT_EQ(lock.withdraw(owner, 0), std::nullopt);
  memory.state().guard.release();
  EXPECT_EQ(lock.request(owner, other, LockMode::exclusive).kind, Requested::Kind::granted);
  EXPECT_FALSE(lock.try_lock(2, LockMode::shared));
  EXPECT_EQ(lock.give_back(owner, other, LockMode::shared), false);
  EXPECT_EQ(lock.give_back(owner, other, LockMode::exclusive), true);
  EXPECT_TRUE(lock.try_lock(2, LockMode::shared));
  EXPECT_FALSE(lock.granted_for_another());
}

TEST(SharedLock, that_is_granted_for_another_says_so_to_the_granter_and_to_who_repairs_after_it) {
  struct FiveIsDead {
    bool operator()(std::uint32_t id) const { return id == 5; }
  };
  SharedLockMemory memory(4);
  SharedLock<> owner(memory.state(), 4);
  SharedLock<> granter(memory.state(), 4);
  ASSERT_TRUE(granter.try_lock(5, LockMode::exclusive));
  const Requested requested = owner.request(1, 9, LockMode::exclusive);
  ASSERT_EQ(requested.kind, Requested::Kind::queued);
  EXPECT_FALSE(owner.has_been_granted(requested.slot));
  EXPECT_TRUE(granter.unlock(5, LockMode::exclusive));
  EXPECT_TRUE(granter.granted_for_another());
  EXPECT_TRUE(owner.has_been_granted(requested.slot));
  EXPECT_EQ(owner.withdraw(1, requested.slot), false);

  ASSERT_TRUE(memory.state().guard.try_acquire(5));
  SharedLock<FiveIsDead> repairer(memory.state(), 4);
  EXPECT_FALSE(repairer.try_lock(2, LockMode::shared));
  EXPECT_TRUE(repairer.granted_for_another());
  EXPECT_EQ(owner.give_back(1, 9, LockMode::exclusive), true);
}

TEST(SharedLock, is_recovered_from_a_holder_and_from_a_guard_that_died) {
  struct FiveIsDead {
    bool operator()(std::uint32_t id) const { return id == 5; }
  };
  SharedLockMemory memory(4);
  SharedLock<FiveIsDead> lock(memory.state(), 4);
  ASSERT_TRUE(lock.try_lock(5, LockMode::exclusive));
  ASSERT_TRUE(memory.state().guard.try_acquire(5));
  EXPECT_EQ(lock.guard_holder(), 5U);
  std::vector<std::uint32_t> holders;
  lock.for_each_holder([&](std::uint32_t id, LockMode) { holders.push_back(id); });
  EXPECT_EQ(holders, (std::vector<std::uint32_t>{5}));
  EXPECT_FALSE(lock.try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(lock.remove_dead(5, 1));
  EXPECT_TRUE(lock.try_lock(1, LockMode::exclusive));
}

}  // namespace
}  // namespace farsum
