// The lock queue as a state machine: who is granted, when, in what order, and what repair makes of a caller killed
// midway.
#include "lockfree/lock_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace farsum {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr LockMode x = LockMode::exclusive;
constexpr LockMode s = LockMode::shared;

// Writes are counted and, from a chosen one on, thrown away: what another process finds after a kill at that write.
struct KilledAtWrite {
  template <class T>
  using Atomic = std::atomic<T>;

  static inline std::optional<int> writes_left;
  static inline std::uint64_t now = 1;
  static std::uint64_t now_ns() { return now; }

  template <class T>
  class Guarded {
   public:
    operator T() const { return value_; }
    Guarded& operator=(T value) {
      if (writes_left && --*writes_left < 0) {
        throw Killed{};
      }
      value_ = value;
      return *this;
    }
    Guarded& operator=(const Guarded& other) { return *this = static_cast<T>(other); }

   private:
    T value_;
  };

  struct Killed {};
};

template <class Policy>
class QueueInMemory {
 public:
  explicit QueueInMemory(std::uint32_t capacity)
      : memory_(1 + BasicLockSlots<Policy>::footprint(capacity) / sizeof(Line)),
        queue_(*reinterpret_cast<BasicLockQueueState<Policy>*>(memory_.data()), memory_[1].bytes, capacity) {}

  BasicLockQueue<Policy>* operator->() { return &queue_; }

  Acquired::Kind acquire(std::uint32_t id, LockMode mode) { return queue_.acquire(id, mode).kind; }

  std::vector<std::uint32_t> release(std::uint32_t id, LockMode mode) {
    std::vector<std::uint32_t> granted;
    EXPECT_TRUE(queue_.release(id, mode, collect_into(granted)));
    return granted;
  }

  std::vector<std::uint32_t> cancel(std::uint32_t slot) {
    std::vector<std::uint32_t> granted;
    EXPECT_TRUE(queue_.cancel(slot, collect_into(granted)));
    return granted;
  }

  std::vector<std::uint32_t> remove(std::uint32_t id) {
    std::vector<std::uint32_t> granted;
    EXPECT_TRUE(queue_.remove(id, collect_into(granted)));
    return granted;
  }

  std::vector<std::uint32_t> holders() {
    std::vector<std::uint32_t> ids;
    queue_.for_each_holder([&](std::uint32_t id, LockMode) { ids.push_back(id); });
    return ids;
  }

  static auto collect_into(std::vector<std::uint32_t>& ids) {
    return [&ids](std::uint32_t id, std::uint32_t) { ids.push_back(id); };
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::vector<Line> memory_;
  BasicLockQueue<Policy> queue_;
};

using Queue = QueueInMemory<SystemAtomics>;

TEST(LockQueue, grants_a_free_lock_at_once) {
  Queue queue(4);
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
  EXPECT_THAT(queue.holders(), ElementsAre(1));
  EXPECT_THAT(queue.release(1, x), IsEmpty());
  EXPECT_THAT(queue.holders(), IsEmpty());
}

TEST(LockQueue, grants_writers_in_order_of_arrival) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(9, x), Acquired::Kind::granted);
  for (const std::uint32_t id : {7U, 3U, 5U}) {
    EXPECT_EQ(queue.acquire(id, x), Acquired::Kind::queued);
  }
  EXPECT_THAT(queue.release(9, x), ElementsAre(7));
  EXPECT_THAT(queue.release(7, x), ElementsAre(3));
  EXPECT_THAT(queue.release(3, x), ElementsAre(5));
  EXPECT_THAT(queue.release(5, x), IsEmpty());
}

TEST(LockQueue, grants_neighbouring_readers_together) {
  Queue queue(8);
  ASSERT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
  queue.acquire(2, s);
  queue.acquire(3, s);
  queue.acquire(4, x);
  queue.acquire(5, s);
  EXPECT_THAT(queue.release(1, x), ElementsAre(2, 3));
  EXPECT_THAT(queue.release(2, s), IsEmpty());
  EXPECT_THAT(queue.release(3, s), ElementsAre(4));
  EXPECT_THAT(queue.release(4, x), ElementsAre(5));
}

TEST(LockQueue, makes_a_reader_wait_behind_a_waiting_writer) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(1, s), Acquired::Kind::granted);
  EXPECT_EQ(queue.acquire(2, s), Acquired::Kind::granted);
  EXPECT_EQ(queue.acquire(3, x), Acquired::Kind::queued);
  EXPECT_FALSE(queue->would_grant(s));
  EXPECT_EQ(queue.acquire(4, s), Acquired::Kind::queued);
  EXPECT_THAT(queue.release(2, s), IsEmpty());
  EXPECT_THAT(queue.release(1, s), ElementsAre(3));
}

TEST(LockQueue, says_full_when_holders_and_waiters_fill_it) {
  Queue queue(2);
  ASSERT_EQ(queue.acquire(1, s), Acquired::Kind::granted);
  ASSERT_EQ(queue.acquire(2, x), Acquired::Kind::queued);
  EXPECT_EQ(queue.acquire(3, s), Acquired::Kind::full);
  EXPECT_THAT(queue.release(1, s), ElementsAre(2));
  EXPECT_EQ(queue.acquire(3, s), Acquired::Kind::queued);
}

TEST(LockQueue, grants_readers_when_the_writer_before_them_gives_up) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(1, s), Acquired::Kind::granted);
  const Acquired writer = queue->acquire(2, x);
  queue.acquire(3, s);
  EXPECT_THAT(queue.cancel(writer.slot), ElementsAre(3));
}

TEST(LockQueue, refuses_to_cancel_what_was_granted) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
  const Acquired waiter = queue->acquire(2, x);
  ASSERT_THAT(queue.release(1, x), ElementsAre(2));
  EXPECT_FALSE(queue->cancel(waiter.slot, [](std::uint32_t, std::uint32_t) {}));
}

TEST(LockQueue, refuses_a_release_by_who_does_not_hold_it) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(1, s), Acquired::Kind::granted);
  const auto ignore = [](std::uint32_t, std::uint32_t) {};
  EXPECT_FALSE(queue->release(2, s, ignore));
  EXPECT_FALSE(queue->release(1, x, ignore));
}

TEST(LockQueue, removes_a_holder_or_a_waiter) {
  Queue queue(4);
  ASSERT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
  queue.acquire(2, x);
  queue.acquire(3, s);
  EXPECT_THAT(queue.remove(2), IsEmpty());
  EXPECT_THAT(queue.remove(1), ElementsAre(3));
  EXPECT_THAT(queue.holders(), ElementsAre(3));
}

TEST(LockQueue, finds_its_holders_when_ids_collide_modulo_capacity) {
  Queue queue(3);
  for (const std::uint32_t id : {1U, 4U, 7U}) {
    ASSERT_EQ(queue.acquire(id, s), Acquired::Kind::granted);
  }
  EXPECT_THAT(queue.release(4, s), IsEmpty());
  EXPECT_THAT(queue.release(7, s), IsEmpty());
  EXPECT_THAT(queue.release(1, s), IsEmpty());
  EXPECT_EQ(queue.acquire(9, x), Acquired::Kind::granted);
}

TEST(LockQueue, tells_of_no_more_turns_before_a_waiter_than_may_wait) {
  Queue queue(4);
  queue.acquire(1, x);
  const std::uint32_t first = queue->acquire(2, x).slot;
  const std::uint32_t second = queue->acquire(3, x).slot;
  EXPECT_EQ(queue->turns_before(first), 0U);
  EXPECT_EQ(queue->turns_before(second), 1U);
  // Others arrive and are gone before the third comes.
  for (int i = 0; i < 10; ++i) queue.cancel(queue->acquire(4, x).slot);
  EXPECT_EQ(queue->turns_before(queue->acquire(4, x).slot), 4U);
}

// ---- sleepers at the head ----

using TimedQueue = QueueInMemory<KilledAtWrite>;

// Who is told, and who is called; a sleeper that would look says that it was called.
struct Telling {
  TimedQueue& queue;
  std::vector<std::uint32_t> granted;
  std::vector<std::uint32_t> called;

  void operator()(std::uint32_t id, std::uint32_t) { granted.push_back(id); }
  bool call(std::uint32_t slot) {
    std::uint32_t expected = lock_word::asleep;
    if (!queue->slot(slot).word.compare_exchange_strong(expected, lock_word::called)) return false;
    called.push_back(queue->slot(slot).id);
    return true;
  }
};

void enqueue(TimedQueue& queue, std::uint32_t id, std::uint32_t word, LockMode mode = x) {
  ASSERT_EQ(queue->acquire(id, mode, word).kind, Acquired::Kind::queued);
}

TEST(LockQueue, passes_over_writers_that_sleep_for_the_first_that_looks) {
  TimedQueue queue(8);
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep);
  enqueue(queue, 3, lock_word::called);
  enqueue(queue, 4, lock_word::waiting);
  enqueue(queue, 5, lock_word::waiting);
  EXPECT_THAT(queue.release(1, x), ElementsAre(4));
  EXPECT_THAT(queue.release(4, x), ElementsAre(5));
  EXPECT_THAT(queue.release(5, x), ElementsAre(2)) << "where none looks the head is next";
  EXPECT_THAT(queue.release(2, x), ElementsAre(3));
  EXPECT_THAT(queue.release(3, x), IsEmpty());
}

TEST(LockQueue, lets_none_pass_over_a_sleeper_that_would_not_look_itself) {
  TimedQueue queue(8);
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep);
  enqueue(queue, 3, lock_word::asleep_for_good);
  EXPECT_THAT(queue.release(1, x), ElementsAre(2));
  EXPECT_THAT(queue.release(2, x), ElementsAre(3));
}

TEST(LockQueue, neither_passes_over_a_proxy_nor_lets_it_pass_over_a_sleeper) {
  TimedQueue queue(8);
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep);
  enqueue(queue, 3, lock_word::proxy);
  enqueue(queue, 4, lock_word::proxy);
  enqueue(queue, 5, lock_word::waiting);
  EXPECT_THAT(queue.release(1, x), ElementsAre(5)) << "a looker behind a proxy passes over the sleeper alone";
  EXPECT_THAT(queue.release(5, x), ElementsAre(2));
  enqueue(queue, 6, lock_word::waiting);
  EXPECT_THAT(queue.release(2, x), ElementsAre(3)) << "a proxy at the head is next though others look";
}

// Hands the lock from one looker to the next, each of which has just arrived, until the sleeper has it; returns how
// many came before it.
std::uint32_t passings(TimedQueue& queue, std::uint64_t between_ns) {
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep);
  std::uint32_t holder = 1;
  for (std::uint32_t passed = 0;; ++passed) {
    const std::uint32_t next = holder == 3 ? 4 : 3;
    enqueue(queue, next, lock_word::waiting);
    KilledAtWrite::now += between_ns;
    const std::vector<std::uint32_t> granted = queue.release(holder, x);
    if (granted == std::vector<std::uint32_t>{2}) return passed;
    EXPECT_THAT(granted, ElementsAre(next));
    if (granted.empty() || passed == 1000) return passed;
    holder = next;
  }
}

TEST(LockQueue, passes_over_a_sleeper_63_times_at_most) {
  TimedQueue queue(4);
  EXPECT_EQ(passings(queue, 0), 63U);
}

TEST(LockQueue, passes_over_a_sleeper_for_a_millisecond_at_most) {
  TimedQueue queue(4);
  EXPECT_EQ(passings(queue, 250'000), 4U);
  TimedQueue other(4);
  EXPECT_EQ(passings(other, 1'000'000), 1U);
}

TEST(LockQueue, counts_the_millisecond_anew_for_each_sleeper) {
  TimedQueue queue(8);
  EXPECT_EQ(passings(queue, 400'000), 3U);
  enqueue(queue, 5, lock_word::asleep);
  // The looker that was left, and the sleeper behind it.
  EXPECT_EQ(queue.release(2, x).size(), 1U);
  enqueue(queue, 6, lock_word::waiting);
  KilledAtWrite::now += 5'000'000;
  const std::uint32_t holder = queue.holders().front();
  EXPECT_THAT(queue.release(holder, x), ElementsAre(6)) << "nobody has passed over the second sleeper before";
}

TEST(LockQueue, lets_no_later_writer_pass_over_a_reader) {
  TimedQueue queue(8);
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep);
  enqueue(queue, 3, lock_word::asleep, s);
  enqueue(queue, 4, lock_word::waiting);
  EXPECT_THAT(queue.release(1, x), ElementsAre(2));
  EXPECT_THAT(queue.release(2, x), ElementsAre(3));
}

TEST(LockQueue, looks_at_eight_waiters_in_a_hand_over) {
  TimedQueue queue(16);
  queue.acquire(1, x);
  for (std::uint32_t id = 2; id < 10; ++id) enqueue(queue, id, lock_word::asleep);
  enqueue(queue, 10, lock_word::waiting);
  EXPECT_THAT(queue.release(1, x), ElementsAre(2)) << "the ninth is not seen";
  EXPECT_THAT(queue.release(2, x), ElementsAre(10)) << "and is the eighth now";
}

TEST(LockQueue, calls_two_sleepers_in_a_hand_over_and_each_but_once) {
  TimedQueue queue(16);
  queue.acquire(1, x);
  enqueue(queue, 2, lock_word::asleep_for_good);
  for (std::uint32_t id = 3; id < 8; ++id) enqueue(queue, id, lock_word::asleep);
  enqueue(queue, 8, lock_word::waiting);
  Telling telling{queue, {}, {}};
  EXPECT_TRUE(queue->release(1, x, telling));
  EXPECT_THAT(telling.granted, ElementsAre(8));
  EXPECT_THAT(telling.called, ElementsAre(3, 4));
  EXPECT_TRUE(queue->release(8, x, telling));
  EXPECT_THAT(telling.granted, ElementsAre(8, 2)) << "none looks, the called have yet to run";
  EXPECT_THAT(telling.called, ElementsAre(3, 4, 5, 6));
}

// ---- holders by bias ----

template <class Policy>
bool enter_two_and_three(QueueInMemory<Policy>& queue) {
  return queue->enter_biased([](auto&& enter) {
    enter(Contender(2));
    enter(Contender(3));
  });
}

TEST(LockQueue, tells_a_writer_that_it_may_be_held_by_bias_and_lets_readers_in) {
  Queue queue(4);
  ASSERT_TRUE(queue->allow_bias());
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::biased);
  EXPECT_EQ(queue.acquire(1, s), Acquired::Kind::granted);
  EXPECT_THAT(queue.release(1, s), IsEmpty());
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::biased);
}

TEST(LockQueue, lets_a_writer_wait_for_those_that_were_entered) {
  Queue queue(4);
  ASSERT_TRUE(queue->allow_bias());
  ASSERT_EQ(queue.acquire(2, s), Acquired::Kind::granted);
  ASSERT_TRUE(enter_two_and_three(queue));
  EXPECT_THAT(queue.holders(), UnorderedElementsAre(2, 3));
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::queued);
  EXPECT_FALSE(queue->allow_bias()) << "a writer waits";
  EXPECT_THAT(queue.release(2, s), IsEmpty());
  EXPECT_THAT(queue.release(3, s), ElementsAre(1));
}

TEST(LockQueue, grants_a_writer_at_once_where_nobody_was_entered) {
  Queue queue(4);
  ASSERT_TRUE(queue->allow_bias());
  ASSERT_TRUE(queue->enter_biased([](auto&&) {}));
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
}

// ---- kills ----

using MortalQueue = QueueInMemory<KilledAtWrite>;

// Kills `step` at its n-th write for every n, repairs, and lets check look at the queue. Repairs are killed, too, at
// every write.
template <class SetUp, class Step, class Check>
void kill_everywhere(SetUp&& set_up, Step&& step, Check&& check) {
  constexpr int more_than_it_writes = 40;
  for (int n = 0; n < more_than_it_writes; ++n) {
    for (int m = 0; m < more_than_it_writes; ++m) {
      SCOPED_TRACE(::testing::Message() << "killed at write " << n << ", the repair at write " << m);
      MortalQueue queue(4);
      set_up(queue);
      std::vector<std::uint32_t> told;
      const auto run_killed_at = [&](int write, auto&& what) {
        KilledAtWrite::writes_left = write;
        try {
          what();
        } catch (const KilledAtWrite::Killed&) {
        }
        KilledAtWrite::writes_left.reset();
      };
      run_killed_at(n, [&] { step(queue); });
      run_killed_at(m, [&] { queue->repair(MortalQueue::collect_into(told)); });
      told.clear();
      queue->repair(MortalQueue::collect_into(told));
      check(queue, told);
    }
  }
}

// After the dead, id 1, is removed, 2 and 3 hold the lock in their turn, in that order, and each was told.
void expect_two_then_three(MortalQueue& queue, const std::vector<std::uint32_t>& told) {
  std::vector<std::uint32_t> granted = told;
  queue->remove(1, MortalQueue::collect_into(granted));
  std::erase(granted, 1U);
  ASSERT_FALSE(granted.empty());
  EXPECT_EQ(granted.front(), 2U);
  ASSERT_THAT(queue.holders(), ElementsAre(2));
  EXPECT_THAT(queue.release(2, x), ElementsAre(3));
  EXPECT_THAT(queue.release(3, x), IsEmpty());
  EXPECT_EQ(queue.acquire(1, x), Acquired::Kind::granted);
}

TEST(LockQueueRepair, completes_the_release_of_a_writer) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(1, x);
        queue.acquire(2, x);
        queue.acquire(3, x);
      },
      [](MortalQueue& queue) { queue->release(1, x, [](std::uint32_t, std::uint32_t) {}); }, expect_two_then_three);
}

TEST(LockQueueRepair, completes_the_release_of_a_writer_that_was_handed_the_lock) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(4, x);
        queue.acquire(1, x);
        queue.acquire(2, x);
        queue.acquire(3, x);
        queue.release(4, x);
      },
      [](MortalQueue& queue) { queue->release(1, x, [](std::uint32_t, std::uint32_t) {}); }, expect_two_then_three);
}

TEST(LockQueueRepair, completes_the_release_of_a_reader) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(1, s);
        queue.acquire(2, x);
        queue.acquire(3, x);
      },
      [](MortalQueue& queue) { queue->release(1, s, [](std::uint32_t, std::uint32_t) {}); }, expect_two_then_three);
}

TEST(LockQueueRepair, completes_a_waiter_that_gives_up) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(4, x);
        queue.acquire(1, x);
        queue.acquire(2, x);
        queue.acquire(3, x);
      },
      [](MortalQueue& queue) { queue->cancel(1, [](std::uint32_t, std::uint32_t) {}); },
      [](MortalQueue& queue, const std::vector<std::uint32_t>&) {
        queue->remove(1, [](std::uint32_t, std::uint32_t) {});
        EXPECT_THAT(queue.release(4, x), ElementsAre(2));
        EXPECT_THAT(queue.release(2, x), ElementsAre(3));
      });
}

TEST(LockQueueRepair, completes_the_arrival_of_a_waiter) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(4, x);
        queue.acquire(2, x);
      },
      [](MortalQueue& queue) { queue.acquire(1, x); },
      [](MortalQueue& queue, const std::vector<std::uint32_t>&) {
        queue->remove(1, [](std::uint32_t, std::uint32_t) {});
        ASSERT_EQ(queue.acquire(3, x), Acquired::Kind::queued);
        EXPECT_THAT(queue.release(4, x), ElementsAre(2));
        EXPECT_THAT(queue.release(2, x), ElementsAre(3));
        EXPECT_THAT(queue.release(3, x), IsEmpty());
      });
}

TEST(LockQueueRepair, completes_the_release_of_a_writer_that_passes_over_a_sleeper) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(1, x);
        enqueue(queue, 2, lock_word::asleep);
        enqueue(queue, 3, lock_word::waiting);
        enqueue(queue, 4, lock_word::waiting);
      },
      [](MortalQueue& queue) { queue->release(1, x, [](std::uint32_t, std::uint32_t) {}); },
      [](MortalQueue& queue, const std::vector<std::uint32_t>&) {
        queue->remove(1, [](std::uint32_t, std::uint32_t) {});
        ASSERT_THAT(queue.holders(), ElementsAre(3));
        EXPECT_THAT(queue.release(3, x), ElementsAre(4));
        EXPECT_THAT(queue.release(4, x), ElementsAre(2));
        EXPECT_THAT(queue.release(2, x), IsEmpty());
      });
}

TEST(LockQueueRepair, tells_every_reader_that_the_dead_had_granted) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue.acquire(1, x);
        queue.acquire(2, s);
        queue.acquire(3, s);
      },
      [](MortalQueue& queue) { queue->release(1, x, [](std::uint32_t, std::uint32_t) {}); },
      [](MortalQueue& queue, std::vector<std::uint32_t> told) {
        queue->remove(1, MortalQueue::collect_into(told));
        EXPECT_THAT(told, ::testing::UnorderedElementsAre(2, 3));
        EXPECT_THAT(queue.holders(), ::testing::UnorderedElementsAre(2, 3));
      });
}

TEST(LockQueueRepair, completes_the_entering_of_those_that_hold_by_bias) {
  kill_everywhere(
      [](MortalQueue& queue) {
        queue->allow_bias();
        queue.acquire(2, s);
      },
      [](MortalQueue& queue) { enter_two_and_three(queue); },
      [](MortalQueue& queue, const std::vector<std::uint32_t>&) {
        if (queue->may_be_biased()) {
          ASSERT_TRUE(enter_two_and_three(queue));
        }
        ASSERT_THAT(queue.holders(), UnorderedElementsAre(2, 3));
        ASSERT_EQ(queue.acquire(4, x), Acquired::Kind::queued);
        EXPECT_THAT(queue.release(2, s), IsEmpty());
        EXPECT_THAT(queue.release(3, s), ElementsAre(4));
      });
}

TEST(LockQueueRepair, completes_the_word_that_it_may_be_held_by_bias) {
  kill_everywhere([](MortalQueue& queue) { queue.acquire(2, s); }, [](MortalQueue& queue) { queue->allow_bias(); },
                  [](MortalQueue& queue, const std::vector<std::uint32_t>&) {
                    if (queue->may_be_biased()) {
                      ASSERT_EQ(queue.acquire(1, x), Acquired::Kind::biased);
                      ASSERT_TRUE(queue->enter_biased([](auto&&) {}));
                    }
                    ASSERT_EQ(queue.acquire(1, x), Acquired::Kind::queued);
                    EXPECT_THAT(queue.release(2, s), ElementsAre(1));
                  });
}

}  // namespace
}  // namespace farsum
