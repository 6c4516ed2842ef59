// Epochs, locks, notifications, mutexes and counters between processes.
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "../../apps/common/any_counter.hpp"
#include "element_lists.hpp"
#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "words.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

farsum_status put_word(farsum_window window, int target, std::size_t word, std::uint64_t value) {
  // Until the epoch ends the engine may read them.
  thread_local std::deque<std::uint64_t> values;
  return farsum_put(window, target, word * 8, &values.emplace_back(value), 8);
}

std::uint64_t peek(const std::uint64_t* word) {
  return std::atomic_ref<const std::uint64_t>(*word).load(std::memory_order_acquire);
}

class EpochsOn : public testing::TestWithParam<const char*> {
 protected:
  Job job(int ranks) const {
    Job job;
    job.ranks = ranks;
    job.settings = path(GetParam());
    return job;
  }
};
INSTANTIATE_TEST_SUITE_P(EachPath, EpochsOn, testing::Values("auto", "owner", "aggregated", "attach", "caller"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(EpochsOn, make_puts_between_fences_visible_after_the_fence) {
  run_ranks(job(3), [](int rank) {
    Words words = allocate_words(3);
    ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE));
    for (std::uint64_t round = 1; round <= 5; ++round) {
      for (int target = 0; target < 3; ++target)
        ASSERT_FINE(put_word(words.window, target, static_cast<std::size_t>(rank),
                             round * 10 + static_cast<std::uint64_t>(rank)));
      ASSERT_FINE(farsum_fence(words.window, 0));
      for (std::uint64_t origin = 0; origin < 3; ++origin) EXPECT_EQ(words.mine[origin], round * 10 + origin);
      ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE));
    }
    ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE | FARSUM_FENCE_NO_SUCCEED));
    EXPECT_REFUSED(put_word(words.window, 0, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST_P(EpochsOn, hand_a_row_of_words_from_origin_to_target_by_post_and_start) {
  run_ranks(job(3), [](int rank) {
    Words words = allocate_words(8);
    // Rank 0 writes to 1 and 2; both orders of post and start come about by themselves, round after round.
    const std::array<int, 2> targets{1, 2};
    const int origin = 0;
    for (std::uint64_t round = 1; round <= 50; ++round) {
      if (rank == 0) {
        ASSERT_FINE(farsum_start(words.window, targets.data(), 2));
        const std::array<std::uint64_t, 8> ones{1, 1, 1, 1, 1, 1, 1, 1};
        for (const int target : targets)
          ASSERT_FINE(farsum_accumulate(words.window, target, 0, ones.data(), 8, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_complete(words.window));
      } else {
        ASSERT_FINE(farsum_post(words.window, &origin, 1));
        if (rank == 1) {
          ASSERT_FINE(farsum_wait_exposure(words.window));
        } else {
          for (int done = 0; done == 0; sched_yield()) {
            ASSERT_FINE(farsum_test_exposure(words.window, &done));
          }
        }
        for (int word = 0; word < 8; ++word) ASSERT_EQ(words.mine[word], round);
      }
    }
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST_P(EpochsOn, of_start_begin_before_the_post_and_keep_what_is_issued_in_its_order) {
  run_ranks(job(2), [](int rank) {
    Words words = allocate_words(8);
    const int peer = 1 - rank;
    const std::array<std::uint64_t, 3> ones{1, 1, 1};
    std::uint64_t read = 0;
    for (std::uint64_t round = 1; round <= 20; ++round) {
      if (rank == 0) {
        ASSERT_FINE(farsum_start(words.window, &peer, 1));
        ASSERT_FINE(put_word(words.window, 1, 0, 10 * round));
        ASSERT_FINE(farsum_accumulate(words.window, 1, 0, ones.data(), 1, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(add_to_words(words.window, 1, {0, 16, 56}, ones.data()));
        ASSERT_FINE(farsum_get(words.window, 1, 8, &read, 8));
        EXPECT_REFUSED(put_word(words.window, 1, 8, 1), FARSUM_ERR_RANGE, HasSubstr("exposes [0, 64)"));
        EXPECT_REFUSED(put_word(words.window, 0, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
        barrier();
        ASSERT_FINE(farsum_complete(words.window));
        EXPECT_EQ(read, round);
      } else {
        words.mine[1] = round;
        barrier();
        EXPECT_EQ(words.mine[7], round - 1);
        ASSERT_FINE(farsum_post(words.window, &peer, 1));
        ASSERT_FINE(farsum_wait_exposure(words.window));
        EXPECT_EQ(words.mine[0], 10 * round + 2);
        EXPECT_EQ(words.mine[2], round);
        EXPECT_EQ(words.mine[7], round);
      }
    }
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST_P(EpochsOn, of_start_wait_for_the_post_where_the_answer_or_the_room_is_needed) {
  run_ranks(job(2), [](int rank) {
    Words words = allocate_words(1);
    const int peer = 1 - rank;
    const std::uint64_t one = 1;
    constexpr std::uint64_t many = 1000;
    for (std::uint64_t round = 0; round < 10; ++round) {
      if (rank == 0) {
        ASSERT_FINE(farsum_start(words.window, &peer, 1));
        std::uint64_t before = 0;
        const std::uint64_t first = round * (many + 1);
        for (std::uint64_t i = 0; i < many; ++i) {
          ASSERT_FINE(farsum_accumulate(words.window, 1, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
          if (i == 2 && round % 2 == 0) {
            ASSERT_FINE(farsum_flush(words.window, 1));
          }
        }
        ASSERT_FINE(farsum_fetch_op(words.window, 1, 0, &one, &before, FARSUM_UINT64, FARSUM_SUM));
        EXPECT_EQ(before, first + many);
        ASSERT_FINE(farsum_complete(words.window));
      } else {
        ASSERT_FINE(farsum_post(words.window, &peer, 1));
        ASSERT_FINE(farsum_wait_exposure(words.window));
        EXPECT_EQ(words.mine[0], (round + 1) * (many + 1));
      }
    }
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Epoch, of_start_that_nobody_posts_for_ends_with_a_forced_finalize) {
  Job job;
  job.starts = false;
  run_ranks(job, [](int rank) {
    ASSERT_FINE(farsum_init(nullptr));
    const Words words = allocate_words(1);
    const int peer = 1 - rank;
    if (rank == 0) {
      ASSERT_FINE(farsum_start(words.window, &peer, 1));
      ASSERT_FINE(put_word(words.window, 1, 0, 1));
    }
    barrier();
    ASSERT_FINE(farsum_finalize_forced());
  });
}

TEST_P(EpochsOn, keep_the_count_under_an_exclusive_lock_exact) {
  run_ranks(job(4), [](int rank) {
    Words words = allocate_words(2);
    constexpr std::uint64_t rounds = 60;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      ASSERT_FINE(farsum_lock(words.window, 1, FARSUM_LOCK_EXCLUSIVE));
      // Read, add and write with plain calls: only exclusion makes it right.
      std::uint64_t value = 0;
      ASSERT_FINE(farsum_get(words.window, 1, 0, &value, 8));
      ASSERT_FINE(farsum_flush(words.window, 1));
      ASSERT_FINE(put_word(words.window, 1, 0, value + 1));
      ASSERT_FINE(farsum_unlock(words.window, 1));
    }
    barrier();
    if (rank == 1) {
      EXPECT_EQ(words.mine[0], 4 * rounds);
    }
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Lock, shared_holders_are_inside_together_and_exclusive_ones_alone) {
  struct Inside {
    std::atomic<int> shared{0}, exclusive{0}, most_shared{0};
    std::atomic<bool> violated{false};
  };
  const SharedWithRanks<Inside> inside;
  run_ranks(4, [&](int rank) {
    Words words = allocate_words(1);
    // First all four hold it shared at once: each waits inside for the others.
    ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_SHARED));
    barrier();
    ASSERT_FINE(farsum_unlock(words.window, 0));
    for (int i = 0; i < 200; ++i) {
      const bool exclusive = (i + rank) % 3 == 0;
      ASSERT_FINE(farsum_lock(words.window, 0, exclusive ? FARSUM_LOCK_EXCLUSIVE : FARSUM_LOCK_SHARED));
      if (exclusive) {
        if (inside->exclusive.fetch_add(1) != 0 || inside->shared.load() != 0) inside->violated = true;
        sched_yield();
        inside->exclusive.fetch_sub(1);
      } else {
        inside->shared.fetch_add(1);
        if (inside->exclusive.load() != 0) inside->violated = true;
        sched_yield();
        inside->shared.fetch_sub(1);
      }
      ASSERT_FINE(farsum_unlock(words.window, 0));
    }
    barrier();
    EXPECT_FALSE(inside->violated.load());
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Lock, goes_round_fairly_among_ranks_that_always_want_it) {
  struct Turns {
    std::array<std::atomic<int>, 3> of_rank{};
    std::atomic<int> total{0};
  };
  const SharedWithRanks<Turns> turns;
  run_ranks(3, [&](int rank) {
    Words words = allocate_words(1);
    barrier();
    // Whoever unlocks queues behind those who wait: none can lap the others by more than it takes them to come back to
    // the queue.
    while (turns->total.load() < 3000) {
      ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
      turns->of_rank[static_cast<std::size_t>(rank)].fetch_add(1);
      turns->total.fetch_add(1);
      // Inside, long enough for the others to queue up.
      for (int i = 0; i < 3; ++i) sched_yield();
      ASSERT_FINE(farsum_unlock(words.window, 0));
    }
    barrier();
    EXPECT_GT(turns->of_rank[static_cast<std::size_t>(rank)].load(), 500) << "of 3000 turns among 3 ranks";
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Lock, all_lets_every_target_be_reached_and_keeps_exclusive_ones_out) {
  const SharedWithRanks<std::atomic<int>> readers;
  run_ranks(3, [&](int rank) {
    Words words = allocate_words(4);
    for (int i = 0; i < 50; ++i) {
      if (rank == 2) {
        ASSERT_FINE(farsum_lock(words.window, i % 3, FARSUM_LOCK_EXCLUSIVE));
        EXPECT_EQ(readers->load(), 0);
        ASSERT_FINE(farsum_unlock(words.window, i % 3));
      } else {
        ASSERT_FINE(farsum_lock_all(words.window));
        readers->fetch_add(1);
        for (int target = 0; target < 3; ++target) {
          const std::uint64_t one = 1;
          ASSERT_FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        }
        readers->fetch_sub(1);
        ASSERT_FINE(farsum_unlock_all(words.window));
      }
    }
    barrier();
    EXPECT_EQ(words.mine[0], 100u);
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

// Rank 1 holds an exclusive lock throughout; rank 0 takes nothing in its way.
TEST_P(EpochsOn, of_unchecked_locks_wait_for_no_lock_and_no_lock_waits_for_them) {
  run_ranks(job(2), [](int rank) {
    Words words = allocate_words(2);
    const std::uint64_t one = 1;
    const auto add = [&](int target, std::size_t word) {
      return farsum_accumulate(words.window, target, word * 8, &one, 1, FARSUM_UINT64, FARSUM_SUM);
    };
    if (rank == 1) ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
    barrier();
    if (rank == 0) {
      ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_UNCHECKED));
      ASSERT_FINE(add(0, 0));
      ASSERT_FINE(farsum_unlock(words.window, 0));
      EXPECT_EQ(peek(words.mine), 1);
      ASSERT_FINE(farsum_lock_all_unchecked(words.window));
      for (int target = 0; target < 2; ++target) ASSERT_FINE(add(target, 1));
      ASSERT_FINE(farsum_flush(words.window, FARSUM_ALL_RANKS));
      EXPECT_EQ(peek(words.mine + 1), 1);
    }
    barrier();
    // And the other way round: rank 0 is within its epoch at both.
    if (rank == 1) {
      ASSERT_FINE(farsum_unlock(words.window, 0));
      for (int target = 0; target < 2; ++target) {
        ASSERT_FINE(farsum_lock(words.window, target, FARSUM_LOCK_EXCLUSIVE));
        ASSERT_FINE(add(target, 0));
        ASSERT_FINE(farsum_unlock(words.window, target));
      }
      // Under a lock that rank 0's end must leave where it is.
      ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
    }
    barrier();
    if (rank == 0) ASSERT_FINE(farsum_unlock_all(words.window));
    barrier();
    if (rank == 1) ASSERT_FINE(farsum_unlock(words.window, 0));
    barrier();
    for (int target = 0; target < 2; ++target) {
      ASSERT_FINE(farsum_lock(words.window, target, FARSUM_LOCK_EXCLUSIVE));
      ASSERT_FINE(farsum_unlock(words.window, target));
    }
    barrier();
    EXPECT_EQ(words.mine[0], rank == 0 ? 2 : 1);
    EXPECT_EQ(words.mine[1], 1);
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST_P(EpochsOn, of_unchecked_locks_exclude_other_epochs_of_the_rank) {
  run_ranks(job(2), [](int rank) {
    Words words = allocate_words(1);
    const int peer = 1 - rank;
    const auto held = HasSubstr("farsum_unlock first");
    for (int target = 0; target < 2; ++target) {
      ASSERT_FINE(farsum_lock(words.window, target, FARSUM_LOCK_UNCHECKED));
      EXPECT_REFUSED(farsum_lock(words.window, target, FARSUM_LOCK_UNCHECKED), FARSUM_ERR_SYNC, held);
      EXPECT_REFUSED(farsum_lock(words.window, target, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC, held);
      EXPECT_REFUSED(farsum_lock_all_unchecked(words.window), FARSUM_ERR_SYNC, HasSubstr("holds locks already"));
      EXPECT_REFUSED(farsum_lock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("holds locks already"));
      EXPECT_REFUSED(farsum_start_unchecked(words.window, &peer, 1), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
      EXPECT_REFUSED(farsum_fence(words.window, 0), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
      EXPECT_REFUSED(farsum_unlock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("no farsum_lock_all precedes"));
      EXPECT_REFUSED(put_word(words.window, 1 - target, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
      EXPECT_FINE(put_word(words.window, target, 0, 1));
      ASSERT_FINE(farsum_unlock(words.window, target));
      EXPECT_REFUSED(farsum_unlock(words.window, target), FARSUM_ERR_SYNC, HasSubstr("does not hold that lock"));
      EXPECT_REFUSED(put_word(words.window, target, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    }
    ASSERT_FINE(farsum_lock_all_unchecked(words.window));
    EXPECT_REFUSED(farsum_lock_all_unchecked(words.window), FARSUM_ERR_SYNC, HasSubstr("holds locks already"));
    EXPECT_REFUSED(farsum_lock(words.window, peer, FARSUM_LOCK_UNCHECKED), FARSUM_ERR_SYNC, held);
    EXPECT_REFUSED(farsum_unlock(words.window, peer), FARSUM_ERR_SYNC, HasSubstr("does not hold that lock"));
    EXPECT_REFUSED(farsum_window_free(&words.window), FARSUM_ERR_PENDING, HasSubstr("farsum_unlock_all first"));
    barrier();
    ASSERT_FINE(farsum_unlock_all(words.window));
    EXPECT_REFUSED(farsum_unlock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("no farsum_lock_all precedes"));
    EXPECT_REFUSED(farsum_lock(words.window, 2, FARSUM_LOCK_UNCHECKED), FARSUM_ERR_RANK, HasSubstr("rank 2"));
    EXPECT_REFUSED(farsum_lock(words.window, 0, unknown<farsum_lock_mode>(3)), FARSUM_ERR_ARGUMENT,
                   HasSubstr("FARSUM_LOCK_UNCHECKED"));
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

// The lock word of a target is its rank's threads' too: of one that takes the lock and one that takes none, one is
// told.
TEST(Locks, of_one_target_go_to_one_thread_whether_they_are_checked_or_not) {
  run_ranks(1, [](int) {
    Words words = allocate_words(1);
    std::atomic<int> inside{0};
    const auto look = [&](farsum_lock_mode mode) {
      for (int i = 0; i < 20'000; ++i) {
        const farsum_status status = farsum_lock(words.window, 0, mode);
        if (status != FARSUM_OK) {
          EXPECT_EQ(status, FARSUM_ERR_SYNC);
          continue;
        }
        EXPECT_EQ(inside.fetch_add(1), 0);
        inside.fetch_sub(1);
        EXPECT_FINE(farsum_unlock(words.window, 0));
      }
    };
    std::thread other(look, FARSUM_LOCK_UNCHECKED);
    look(FARSUM_LOCK_EXCLUSIVE);
    other.join();
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

// Where a barrier stands for the post. The starts between wait for their own posts, which an unchecked one must not
// leave for them.
TEST_P(EpochsOn, of_unchecked_starts_use_their_posts_up) {
  run_ranks(job(2), [](int rank) {
    Words words = allocate_words(1);
    const int peer = 1 - rank;
    for (std::uint64_t round = 1; round <= 60; ++round) {
      const bool is_known = round % 3 == 0;
      if (rank == 0) {
        words.mine[0] = round;
        ASSERT_FINE(farsum_post(words.window, &peer, 1));
        if (is_known) barrier();
        ASSERT_FINE(farsum_wait_exposure(words.window));
      } else {
        std::uint64_t read = 0;
        if (is_known) barrier();
        ASSERT_FINE(is_known ? farsum_start_unchecked(words.window, &peer, 1) : farsum_start(words.window, &peer, 1));
        ASSERT_FINE(farsum_get(words.window, 0, 0, &read, 8));
        ASSERT_FINE(farsum_complete(words.window));
        EXPECT_EQ(read, round);
      }
    }
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Epoch, that_takes_no_lock_ends_with_a_forced_finalize) {
  Job job;
  job.starts = false;
  run_ranks(job, [](int) {
    ASSERT_FINE(farsum_init(nullptr));
    const Words first = allocate_words(1);
    const Words second = allocate_words(1);
    ASSERT_FINE(farsum_lock_all_unchecked(first.window));
    ASSERT_FINE(farsum_lock(second.window, 1, FARSUM_LOCK_UNCHECKED));
    EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING, testing::_);
    EXPECT_FINE(farsum_finalize_forced());
  });
}

TEST_P(EpochsOn, take_operations_of_nothing_wherever_they_point) {
  run_ranks(job(2), [](int rank) {
    // The part of rank 0 is empty.
    Words words = allocate_words(rank == 0 ? 0 : 2);
    const int peer = 1 - rank;
    const std::size_t far = 1'000'000;
    std::uint64_t word = 1;
    const auto all = [&](farsum_status expected, int target) {
      EXPECT_EQ(farsum_put(words.window, target, far, nullptr, 0), expected);
      EXPECT_EQ(farsum_get(words.window, target, far, &word, 0), expected);
      EXPECT_EQ(farsum_accumulate(words.window, target, far, &word, 0, FARSUM_UINT64, FARSUM_SUM), expected);
      EXPECT_EQ(farsum_get_accumulate(words.window, target, ~std::uint64_t{0}, nullptr, &word, 0, FARSUM_UINT64,
                                      FARSUM_NO_OP),
                expected);
      EXPECT_EQ(add_to_words(words.window, target, {}, nullptr), expected);
      farsum_operation operation{};
      operation.struct_bytes = sizeof operation;
      operation.target = target;
      operation.offset = far;
      farsum_request request{};
      operation.completion = FARSUM_EXPLICIT;
      EXPECT_EQ(farsum_operate(words.window, &operation, &request), expected);
      if (expected == FARSUM_OK) EXPECT_FINE(farsum_wait(&request));
    };
    all(FARSUM_ERR_SYNC, peer);
    ASSERT_FINE(farsum_lock_all(words.window));
    all(FARSUM_OK, peer);
    all(FARSUM_OK, rank);
    all(FARSUM_ERR_RANK, 2);
    ASSERT_FINE(farsum_unlock_all(words.window));
    EXPECT_EQ(word, 1);
    // With a notification, which comes all the same.
    ASSERT_FINE(farsum_fence(words.window, 0));
    EXPECT_FINE(farsum_put_notify(words.window, peer, far, nullptr, 0, 3));
    EXPECT_FINE(farsum_notify_wait(words.window, 3, 1));
    ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_SUCCEED));
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Epoch, that_does_not_nest_is_refused_and_changes_nothing) {
  run_ranks(2, [](int rank) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.name = "nest";
    Words words = allocate_words(1, &options);
    const int other = 1 - rank;
    EXPECT_REFUSED(farsum_unlock(words.window, other), FARSUM_ERR_SYNC,
                   AllOf(HasSubstr("farsum_unlock"), HasSubstr("nest"), HasSubstr("rank " + std::to_string(other))));
    EXPECT_REFUSED(farsum_unlock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("no farsum_lock_all precedes"));
    EXPECT_REFUSED(farsum_complete(words.window), FARSUM_ERR_SYNC, HasSubstr("no farsum_start precedes"));
    EXPECT_REFUSED(farsum_wait_exposure(words.window), FARSUM_ERR_SYNC, HasSubstr("no farsum_post precedes"));
    int done = 0;
    EXPECT_REFUSED(farsum_test_exposure(words.window, &done), FARSUM_ERR_SYNC, HasSubstr("no farsum_post precedes"));
    EXPECT_REFUSED(farsum_flush(words.window, other), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));

    ASSERT_FINE(farsum_lock(words.window, rank, FARSUM_LOCK_SHARED));
    EXPECT_REFUSED(farsum_lock(words.window, rank, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC,
                   HasSubstr("holds that lock already"));
    EXPECT_REFUSED(farsum_lock(words.window, rank, FARSUM_LOCK_EXCLUSIVE), FARSUM_ERR_SYNC,
                   HasSubstr("holds that lock already"));
    EXPECT_REFUSED(farsum_lock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("holds locks already"));
    EXPECT_REFUSED(farsum_fence(words.window, 0), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
    EXPECT_REFUSED(put_word(words.window, other, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    EXPECT_FINE(put_word(words.window, rank, 0, 7));
    ASSERT_FINE(farsum_unlock(words.window, rank));

    ASSERT_FINE(farsum_lock_all(words.window));
    EXPECT_REFUSED(farsum_lock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("holds locks already"));
    EXPECT_REFUSED(farsum_lock(words.window, other, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC,
                   HasSubstr("holds that lock already"));
    EXPECT_REFUSED(farsum_unlock(words.window, other), FARSUM_ERR_SYNC, HasSubstr("does not hold that lock"));
    ASSERT_FINE(farsum_unlock_all(words.window));

    ASSERT_FINE(farsum_post(words.window, &other, 1));
    EXPECT_REFUSED(farsum_post(words.window, &other, 1), FARSUM_ERR_SYNC, HasSubstr("already posted"));
    EXPECT_REFUSED(farsum_fence(words.window, 0), FARSUM_ERR_SYNC, HasSubstr("farsum_wait_exposure first"));
    ASSERT_FINE(farsum_start(words.window, &other, 1));
    EXPECT_REFUSED(farsum_fence(words.window, 0), FARSUM_ERR_SYNC, HasSubstr("farsum_start is open"));
    EXPECT_REFUSED(farsum_start(words.window, &other, 1), FARSUM_ERR_SYNC, HasSubstr("already started"));
    EXPECT_REFUSED(farsum_lock(words.window, other, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC,
                   HasSubstr("complete it first"));
    EXPECT_REFUSED(farsum_lock_all(words.window), FARSUM_ERR_SYNC, HasSubstr("complete it first"));
    EXPECT_REFUSED(put_word(words.window, rank, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    ASSERT_FINE(farsum_complete(words.window));
    ASSERT_FINE(farsum_wait_exposure(words.window));

    const std::array<int, 1> nobody{9};
    EXPECT_REFUSED(farsum_post(words.window, nobody.data(), 1), FARSUM_ERR_RANK, HasSubstr("rank 9"));
    EXPECT_REFUSED(farsum_start(words.window, nobody.data(), 1), FARSUM_ERR_RANK, HasSubstr("rank 9"));
    EXPECT_REFUSED(farsum_post(words.window, nullptr, 1), FARSUM_ERR_ARGUMENT, HasSubstr("farsum_post"));
    EXPECT_REFUSED(farsum_start(words.window, nobody.data(), -1), FARSUM_ERR_ARGUMENT, HasSubstr("farsum_start"));
    EXPECT_EQ(words.mine[0], 7u);
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

// What follows an epoch of a fence in which nothing was issued, and one in which something was.
using Begin = farsum_status (*)(farsum_window, int);

class AfterAFence : public testing::TestWithParam<std::pair<const char*, std::pair<Begin, Begin>>> {};
INSTANTIATE_TEST_SUITE_P(
    EachKind, AfterAFence,
    testing::Values(
        std::pair{"lock", std::pair<Begin, Begin>{
                              [](farsum_window window, int) { return farsum_lock(window, 0, FARSUM_LOCK_SHARED); },
                              [](farsum_window window, int) { return farsum_unlock(window, 0); }}},
        std::pair{"lock_all",
                  std::pair<Begin, Begin>{[](farsum_window window, int) { return farsum_lock_all(window); },
                                          [](farsum_window window, int) { return farsum_unlock_all(window); }}},
        std::pair{"start", std::pair<Begin, Begin>{[](farsum_window window, int) {
                                                     const int first = 0;
                                                     return farsum_start(window, &first, 1);
                                                   },
                                                   [](farsum_window window, int) { return farsum_complete(window); }}}),
    [](const auto& tested) { return std::string(tested.param.first); });

TEST_P(AfterAFence, begins_if_nothing_was_issued_and_is_refused_until_the_next_fence_otherwise) {
  for (const char* way : {"auto", "owner", "attach", "aggregated"}) {
    Job two;
    two.settings = path(way);
    run_ranks(two, [](int rank) {
      const auto [begin, end] = GetParam().second;
      Words words = allocate_words(2);
      const std::array<int, 2> both{0, 1};
      for (int round = 0; round < 2; ++round) {
        ASSERT_FINE(farsum_fence(words.window, 0));
        if (rank == 0) {
          ASSERT_FINE(farsum_post(words.window, both.data(), 2));
        }
        ASSERT_FINE(begin(words.window, rank));
        ASSERT_FINE(put_word(words.window, 0, static_cast<std::size_t>(rank), 5));
        ASSERT_FINE(end(words.window, rank));
        if (rank == 0 && std::string(GetParam().first) != "start") {
          // Nobody has used the exposure: it is used up now.
          ASSERT_FINE(farsum_start(words.window, both.data(), 1));
          ASSERT_FINE(farsum_complete(words.window));
        }
        if (rank == 1 && std::string(GetParam().first) != "start") {
          ASSERT_FINE(farsum_start(words.window, both.data(), 1));
          ASSERT_FINE(farsum_complete(words.window));
        }
        if (rank == 0) {
          ASSERT_FINE(farsum_wait_exposure(words.window));
        }
        // The fence's epoch is over.
        EXPECT_REFUSED(put_word(words.window, 0, 0, 1), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));

        ASSERT_FINE(farsum_fence(words.window, 0));
        const std::uint64_t one = 1;
        ASSERT_FINE(farsum_accumulate(words.window, 0, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        EXPECT_REFUSED(begin(words.window, rank), FARSUM_ERR_SYNC, HasSubstr("issued in the epoch of a fence"));
        ASSERT_FINE(put_word(words.window, 0, 1, 6));
        ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_SUCCEED));
      }
      EXPECT_FINE(farsum_window_free(&words.window));
    });
  }
}

TEST(Locks, of_several_targets_are_taken_by_several_threads_at_once) {
  run_ranks(3, [](int rank) {
    Words words = allocate_words(1);
    std::vector<std::thread> threads;
    for (int target = 0; target < 3; ++target) {
      threads.emplace_back([&words, target] {
        for (int i = 0; i < 2000; ++i) {
          std::uint64_t value = 0;
          ASSERT_FINE(farsum_lock(words.window, target, FARSUM_LOCK_EXCLUSIVE));
          ASSERT_FINE(farsum_get(words.window, target, 0, &value, sizeof value));
          ASSERT_FINE(put_word(words.window, target, 0, value + 1));
          ASSERT_FINE(farsum_unlock(words.window, target));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    barrier();
    EXPECT_EQ(peek(words.mine), 6000) << rank;
    ASSERT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Locks, of_one_target_go_to_one_thread_of_a_rank_and_the_others_are_told) {
  run_ranks(2, [](int) {
    Words words = allocate_words(1);
    std::atomic<int> holders{0};
    const auto take_and_give_back = [&] {
      for (int i = 0; i < 2000; ++i) {
        const farsum_status status = farsum_lock(words.window, 1, FARSUM_LOCK_SHARED);
        if (status == FARSUM_ERR_SYNC) continue;
        ASSERT_FINE(status);
        EXPECT_EQ(holders.fetch_add(1, std::memory_order_relaxed), 0);
        holders.fetch_sub(1, std::memory_order_relaxed);
        ASSERT_FINE(farsum_unlock(words.window, 1));
      }
    };
    std::thread other(take_and_give_back);
    take_and_give_back();
    other.join();
    ASSERT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Epoch, of_a_lock_and_of_start_exclude_each_other) {
  run_ranks(2, [](int rank) {
    Words words = allocate_words(1);
    const int other = 1 - rank;
    // Another target may be locked meanwhile, but no epoch of another kind begins.
    ASSERT_FINE(farsum_lock(words.window, rank, FARSUM_LOCK_SHARED));
    ASSERT_FINE(farsum_lock(words.window, other, FARSUM_LOCK_SHARED));
    EXPECT_REFUSED(farsum_start(words.window, &other, 1), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
    ASSERT_FINE(farsum_unlock(words.window, rank));
    EXPECT_REFUSED(farsum_start(words.window, &other, 1), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
    ASSERT_FINE(farsum_unlock(words.window, other));
    ASSERT_FINE(farsum_lock_all(words.window));
    EXPECT_REFUSED(farsum_start(words.window, nullptr, 0), FARSUM_ERR_SYNC, HasSubstr("a lock is held"));
    ASSERT_FINE(farsum_unlock_all(words.window));
    ASSERT_FINE(farsum_start(words.window, nullptr, 0));
    ASSERT_FINE(farsum_complete(words.window));
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Epoch, of_a_lock_alone_may_be_flushed_where_epochs_are_strict) {
  for (const bool strict : {false, true}) {
    run_ranks(2, [strict](int rank) {
      farsum_window_options options{};
      options.struct_bytes = sizeof options;
      options.promises = strict ? FARSUM_STRICT_EPOCHS : 0;
      Words words = allocate_words(2, &options);
      const int other = 1 - rank;
      const auto flush = [&](bool passive) {
        for (const int target : {other, FARSUM_ALL_RANKS}) {
          if (passive || !strict) {
            EXPECT_FINE(farsum_flush(words.window, target));
            EXPECT_FINE(farsum_flush_local(words.window, target));
          } else {
            EXPECT_REFUSED(farsum_flush(words.window, target), FARSUM_ERR_SYNC, HasSubstr("FARSUM_STRICT_EPOCHS"));
            EXPECT_REFUSED(farsum_flush_local(words.window, target), FARSUM_ERR_SYNC, HasSubstr("farsum_lock"));
          }
        }
      };
      EXPECT_REFUSED(farsum_flush(words.window, other), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
      ASSERT_FINE(farsum_lock(words.window, other, FARSUM_LOCK_SHARED));
      flush(true);
      EXPECT_REFUSED(farsum_flush(words.window, rank), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
      ASSERT_FINE(farsum_unlock(words.window, other));
      ASSERT_FINE(farsum_lock_all(words.window));
      flush(true);
      ASSERT_FINE(farsum_unlock_all(words.window));
      ASSERT_FINE(farsum_fence(words.window, 0));
      ASSERT_FINE(put_word(words.window, other, 0, 3));
      flush(false);
      ASSERT_FINE(farsum_fence(words.window, FARSUM_FENCE_NO_SUCCEED));
      EXPECT_EQ(words.mine[0], 3u);
      ASSERT_FINE(farsum_post(words.window, &other, 1));
      ASSERT_FINE(farsum_start(words.window, &other, 1));
      ASSERT_FINE(put_word(words.window, other, 1, 4));
      flush(false);
      ASSERT_FINE(farsum_complete(words.window));
      ASSERT_FINE(farsum_wait_exposure(words.window));
      EXPECT_EQ(words.mine[1], 4u);
      EXPECT_FINE(farsum_window_free(&words.window));
    });
  }
}

TEST(Epoch, of_post_and_start_may_name_no_rank_at_all) {
  run_ranks(2, [](int) {
    Words words = allocate_words(1);
    ASSERT_FINE(farsum_post(words.window, nullptr, 0));
    int done = 0;
    ASSERT_FINE(farsum_test_exposure(words.window, &done));
    EXPECT_EQ(done, 1);
    ASSERT_FINE(farsum_post(words.window, nullptr, 0));
    ASSERT_FINE(farsum_start(words.window, nullptr, 0));
    ASSERT_FINE(farsum_complete(words.window));
    ASSERT_FINE(farsum_wait_exposure(words.window));
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST_P(EpochsOn, tell_the_target_that_data_has_come) {
  run_ranks(job(2), [](int rank) {
    // Sizes that ride in a message and that are pulled; nothing at all is a bare notification.
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1024}, std::size_t{1025}, std::size_t{20000}}) {
      Words words = allocate_words(20000);
      std::vector<std::uint64_t> data(count);
      if (rank == 0) {
        ASSERT_FINE(farsum_lock(words.window, 1, FARSUM_LOCK_SHARED));
        for (std::uint64_t round = 1; round <= 5; ++round) {
          std::fill(data.begin(), data.end(), round);
          ASSERT_FINE(farsum_put_notify(words.window, 1, 0, data.data(), count * 8, 3));
          ASSERT_FINE(farsum_flush(words.window, 1));
          // The target answers once it has looked.
          ASSERT_FINE(farsum_notify_wait(words.window, 0, round));
        }
        ASSERT_FINE(farsum_unlock(words.window, 1));
      } else {
        ASSERT_FINE(farsum_lock(words.window, 0, FARSUM_LOCK_SHARED));
        for (std::uint64_t round = 1; round <= 5; ++round) {
          ASSERT_FINE(farsum_notify_wait(words.window, 3, round));
          for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(peek(words.mine + i), round);
          ASSERT_FINE(farsum_put_notify(words.window, 0, 0, nullptr, 0, 0));
        }
        ASSERT_FINE(farsum_unlock(words.window, 0));
        std::uint64_t value = 0;
        EXPECT_FINE(farsum_notify_value(words.window, 3, &value));
        EXPECT_EQ(value, 5u);
        EXPECT_FINE(farsum_notify_value(words.window, 4, &value));
        EXPECT_EQ(value, 0u);
      }
      barrier();
      EXPECT_FINE(farsum_window_free(&words.window));
    }
  });
}

TEST_P(EpochsOn, refuse_a_notification_slot_that_the_window_has_not) {
  run_ranks(job(2), [](int) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.notification_slots = 2;
    Words words = allocate_words(1, &options);
    ASSERT_FINE(farsum_lock_all(words.window));
    const std::uint64_t value = 1;
    EXPECT_REFUSED(farsum_put_notify(words.window, 1, 0, &value, 8, 2), FARSUM_ERR_RANGE,
                   AllOf(HasSubstr("slot 2"), HasSubstr("has 2 (0 to 1)")));
    EXPECT_REFUSED(farsum_notify_wait(words.window, 1u << 31, 1), FARSUM_ERR_RANGE, HasSubstr("slot 2147483648"));
    std::uint64_t seen = 0;
    EXPECT_REFUSED(farsum_notify_value(words.window, 2, &seen), FARSUM_ERR_RANGE, HasSubstr("slot 2"));
    ASSERT_FINE(farsum_unlock_all(words.window));
    EXPECT_EQ(words.mine[0], 0u);
    EXPECT_FINE(farsum_window_free(&words.window));
  });
}

TEST(Mutexes, exclude_and_may_differ_in_number_by_rank) {
  struct Counted {
    std::uint64_t count = 0;  // plain: the mutex guards it
  };
  const SharedWithRanks<Counted> counted;
  run_ranks(3, [&](int rank) {
    farsum_mutex mutexes{};
    ASSERT_FINE(farsum_mutex_create(farsum_world(), rank, &mutexes));  // 0, 1 and 2 of them
    for (int i = 0; i < 300; ++i) {
      ASSERT_FINE(farsum_mutex_lock(mutexes, 2, 1));
      ++counted->count;
      ASSERT_FINE(farsum_mutex_unlock(mutexes, 2, 1));
    }
    barrier();
    EXPECT_EQ(counted->count, 900u);
    EXPECT_REFUSED(farsum_mutex_lock(mutexes, 0, 0), FARSUM_ERR_RANGE,
                   AllOf(HasSubstr("mutex 0"), HasSubstr("rank 0 keeps 0")));
    EXPECT_REFUSED(farsum_mutex_lock(mutexes, 2, -1), FARSUM_ERR_RANGE, HasSubstr("mutex -1"));
    EXPECT_REFUSED(farsum_mutex_lock(mutexes, 3, 0), FARSUM_ERR_RANK, HasSubstr("rank 3"));
    EXPECT_REFUSED(farsum_mutex_unlock(mutexes, 1, 0), FARSUM_ERR_SYNC, HasSubstr("does not hold"));
    barrier();
    if (rank == 0) {
      ASSERT_FINE(farsum_mutex_lock(mutexes, 1, 0));
      EXPECT_REFUSED(farsum_mutex_lock(mutexes, 1, 0), FARSUM_ERR_SYNC, HasSubstr("not recursive"));
    }
    barrier();
    if (rank == 2) {
      EXPECT_REFUSED(farsum_mutex_unlock(mutexes, 1, 0), FARSUM_ERR_SYNC, HasSubstr("does not hold"));
    }
    // One rank holds one: freeing is refused on every rank alike.
    EXPECT_REFUSED(farsum_mutex_free(&mutexes), FARSUM_ERR_PENDING, HasSubstr("rank 0 of the group still holds"));
    EXPECT_NE(mutexes.bits, 0u);
    if (rank == 0) ASSERT_FINE(farsum_mutex_unlock(mutexes, 1, 0));
    const farsum_mutex old = mutexes;
    ASSERT_FINE(farsum_mutex_free(&mutexes));
    EXPECT_EQ(mutexes.bits, 0u);
    EXPECT_REFUSED(farsum_mutex_lock(old, 1, 0), FARSUM_ERR_HANDLE, HasSubstr("do not live"));
    EXPECT_REFUSED(farsum_mutex_free(&mutexes), FARSUM_ERR_HANDLE, HasSubstr("do not live"));
    EXPECT_REFUSED(farsum_mutex_create(farsum_world(), -1, &mutexes), FARSUM_ERR_ARGUMENT,
                   HasSubstr("must not be negative"));
  });
}

// ---- counters ----

class CountersOf : public testing::TestWithParam<std::tuple<apps::CounterKind, const char*>> {};
std::string counter_on_path(const testing::TestParamInfo<std::tuple<apps::CounterKind, const char*>>& tested) {
  const std::array<const char*, 4> kinds{"strict", "leased", "per_rank", "tree"};
  return std::string(kinds[static_cast<std::size_t>(std::get<0>(tested.param))]) + "_on_" + std::get<1>(tested.param);
}
INSTANTIATE_TEST_SUITE_P(EachKind, CountersOf,
                         testing::Combine(testing::Values(apps::CounterKind::strict, apps::CounterKind::leased,
                                                          apps::CounterKind::per_rank, apps::CounterKind::tree),
                                          testing::Values("auto", "owner", "caller", "aggregated")),
                         counter_on_path);

constexpr int counting_ranks = 3;
constexpr std::uint64_t tickets_each = 100;
constexpr std::uint64_t tickets_of_all = counting_ranks * tickets_each;

struct Handed {
  std::array<std::atomic<int>, tickets_of_all> times{};
};

void take_tickets(apps::AnyCounter& counter, bool is_leased, Handed& handed) {
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; is_leased || i < tickets_each; ++i) {
    std::uint64_t ticket = 0;
    ASSERT_FINE(counter.next(&ticket));
    if (is_leased && ticket >= tickets_of_all) return;
    ASSERT_LT(ticket, tickets_of_all);
    handed.times[ticket].fetch_add(1);
    if (i != 0 && !is_leased) {
      EXPECT_GT(ticket, last);
    }
    last = ticket;
  }
}

TEST_P(CountersOf, hand_out_every_ticket_once_and_again_after_a_reset) {
  const auto [kind, chosen] = GetParam();
  const SharedWithRanks<std::array<Handed, 2>> handed;
  Job job;
  job.ranks = counting_ranks;
  job.settings = path(chosen);
  run_ranks(job, [&, kind = kind](int) {
    apps::AnyCounter counter;
    ASSERT_FINE(counter.create(kind, 1, tickets_of_all));
    for (Handed& round : *handed) {
      take_tickets(counter, kind == apps::CounterKind::leased, round);
      ASSERT_FINE(counter.reset());
      for (const std::atomic<int>& times : round.times) ASSERT_EQ(times.load(), 1);
    }
    ASSERT_FINE(counter.free());
  });
}

TEST(Counter, that_was_freed_is_refused) {
  run_ranks(2, [](int) {
    farsum_counter_options options{};
    options.struct_bytes = sizeof options;
    farsum_counter counter{};
    ASSERT_FINE(farsum_counter_create(farsum_world(), &options, &counter));
    const farsum_counter old = counter;
    ASSERT_FINE(farsum_counter_free(&counter));
    EXPECT_EQ(counter.bits, 0u);
    std::uint64_t ticket = 0;
    EXPECT_REFUSED(farsum_counter_next(old, &ticket), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    EXPECT_REFUSED(farsum_counter_reset(old), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
  });
}

TEST(Counter, that_is_strict_is_linearizable) {
  // A ticket that was handed out before another was asked for is the smaller one: the ranks take turns, told by a
  // barrier.
  run_ranks(3, [](int rank) {
    farsum_counter_options options{};
    options.struct_bytes = sizeof options;
    farsum_counter counter{};
    ASSERT_FINE(farsum_counter_create(farsum_world(), &options, &counter));
    for (std::uint64_t turn = 0; turn < 30; ++turn) {
      if (turn % 3 == static_cast<std::uint64_t>(rank)) {
        std::uint64_t ticket = 0;
        ASSERT_FINE(farsum_counter_next(counter, &ticket));
        EXPECT_EQ(ticket, turn);
      }
      barrier();
    }
    ASSERT_FINE(farsum_counter_free(&counter));
  });
}

TEST(Counter, that_is_leased_hands_out_every_ticket_once_whatever_the_limit) {
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1000}}) {
    const SharedWithRanks<std::array<std::atomic<int>, 1000>> times;
    run_ranks(4, [&](int) {
      farsum_counter_options options{};
      options.struct_bytes = sizeof options;
      options.kind = FARSUM_COUNTER_LEASED;
      options.limit = limit;
      farsum_counter counter{};
      ASSERT_FINE(farsum_counter_create(farsum_world(), &options, &counter));
      std::uint64_t ticket = 0;
      for (;;) {
        ASSERT_FINE(farsum_counter_next(counter, &ticket));
        if (ticket >= limit) break;
        (*times)[ticket].fetch_add(1);
      }
      barrier();
      for (std::uint64_t i = 0; i < limit; ++i) ASSERT_EQ((*times)[i].load(), 1) << "ticket " << i << " of " << limit;
      ASSERT_FINE(farsum_counter_free(&counter));
    });
  }
}

TEST(Counter, refuses_a_home_outside_the_group_and_unknown_kinds) {
  run_ranks(2, [](int) {
    farsum_counter_options options{};
    farsum_counter counter{};
    EXPECT_REFUSED(farsum_counter_create(farsum_world(), &options, &counter), FARSUM_ERR_ARGUMENT,
                   HasSubstr("struct_bytes"));
    EXPECT_REFUSED(farsum_counter_create(farsum_world(), nullptr, &counter), FARSUM_ERR_ARGUMENT, HasSubstr("options"));
    options.struct_bytes = sizeof options;
    options.home = 2;
    EXPECT_REFUSED(farsum_counter_create(farsum_world(), &options, &counter), FARSUM_ERR_RANK,
                   HasSubstr("home rank 2"));
    options.home = -1;
    EXPECT_REFUSED(farsum_counter_create(farsum_world(), &options, &counter), FARSUM_ERR_RANK,
                   HasSubstr("home rank -1"));
    options.home = 0;
    options.kind = unknown<farsum_counter_kind>(2);
    if (enumerators_may_be_unknown) {
      EXPECT_REFUSED(farsum_counter_create(farsum_world(), &options, &counter), FARSUM_ERR_ARGUMENT,
                     HasSubstr("unknown kind 2"));
    }
    EXPECT_EQ(counter.bits, 0u);
  });
}

TEST(DeadPeer, ends_the_loop_of_a_rank_that_only_tests) {
  Job job;
  job.ranks = 2;
  job.settings = path("owner");
  job.starts = false;
  const SharedWithRanks<std::atomic<int>> told;
  // Rank 0 ends without a word, but with a good exit status: its death is what the test is about.
  run_ranks(job, [&](int rank) {
    ASSERT_FINE(farsum_init(nullptr));
    Words words = allocate_words(4);
    if (rank == 0) _exit(0);
    const int other = 0;
    ASSERT_FINE(farsum_post(words.window, &other, 1));
    int done = 0;
    farsum_status status = FARSUM_OK;
    while (status == FARSUM_OK && done == 0) status = farsum_test_exposure(words.window, &done);
    EXPECT_EQ(done, 0);
    EXPECT_STREQ(farsum_status_name(status), "FARSUM_ERR_PEER_FAILED");
    EXPECT_THAT(farsum_last_error(), AllOf(HasSubstr("farsum_test_exposure"), HasSubstr("rank 0")));
    told->fetch_add(1);
  });
  EXPECT_EQ(told->load(), 1);
}

}  // namespace
}  // namespace farsum::test
