// Single elements beside bulk on the same words: the former go without a lock while nobody does the latter.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "capi/global.hpp"
#include "farsum.h"
#include "os/process_barrier.hpp"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

constexpr int adding_ranks = 3;
constexpr std::size_t word_count = 96;

struct SharedWords {
  farsum_window window{};
  std::int64_t* memory = nullptr;

  SharedWords() {
    void* place = nullptr;
    EXPECT_EQ(farsum_window_allocate(farsum_world(), word_count * sizeof(std::int64_t), nullptr, &place, &window),
              FARSUM_OK)
        << farsum_last_error();
    memory = static_cast<std::int64_t*>(place);
    EXPECT_EQ(farsum_barrier(farsum_world()), FARSUM_OK);
    EXPECT_EQ(farsum_lock_all(window), FARSUM_OK);
  }
  ~SharedWords() {
    EXPECT_EQ(farsum_unlock_all(window), FARSUM_OK);
    EXPECT_EQ(farsum_window_free(&window), FARSUM_OK);
  }

  void add_single(std::uint64_t word) const {
    const std::int64_t one = 1;
    std::int64_t before = -1;
    ASSERT_EQ(farsum_fetch_op(window, 0, word * sizeof one, &one, &before, FARSUM_INT64, FARSUM_SUM), FARSUM_OK);
  }
  void add_to_all() const {
    static const std::vector<std::int64_t> ones(word_count, 1);  // until a flush the engine may read them
    ASSERT_EQ(farsum_accumulate(window, 0, 0, ones.data(), word_count, FARSUM_INT64, FARSUM_SUM), FARSUM_OK);
  }
  // By rank 0, whose memory it is. The words lie in one.
  const StripeLock& stripe() const {
    NodeSegment& segment = capi::global().context->segment();
    return segment.stripes()[(segment.offset_of(memory) >> stripe_shift) & (node_stripes - 1)];
  }
  void expect_everywhere(std::int64_t value) const {
    EXPECT_EQ(farsum_flush(window, 0), FARSUM_OK);
    EXPECT_EQ(farsum_barrier(farsum_world()), FARSUM_OK);
    std::vector<std::int64_t> all(word_count, -1);
    EXPECT_EQ(farsum_get(window, 0, 0, all.data(), word_count * sizeof(std::int64_t)), FARSUM_OK);
    EXPECT_EQ(farsum_flush(window, 0), FARSUM_OK);
    for (const std::int64_t word : all) ASSERT_EQ(word, value);
    EXPECT_EQ(farsum_barrier(farsum_world()), FARSUM_OK);
  }
};

// Long runs of singles, so that the stripe becomes lock-free again and again, and bulk in between, which revokes that.
TEST(LockFreeStripes, lose_no_update_to_bulk_of_another_rank) {
  run_ranks(adding_ranks, [](int rank) {
    const SharedWords shared;
    constexpr int rounds = 1500;
    for (int round = 0; round < rounds; ++round) {
      if (rank == 0 && round % 8 == 0) {
        for (int i = 0; i < 8; ++i) shared.add_to_all();
      }
      if (rank != 0) {
        for (std::uint64_t word = 0; word < word_count; ++word) shared.add_single(word);
      }
      if (testing::Test::HasFatalFailure()) _exit(1);
    }
    const std::int64_t of_bulk = (rounds + 7) / 8 * 8;
    shared.expect_everywhere(std::int64_t{rounds} * (adding_ranks - 1) + of_bulk);
  });
}

// Here each revocation finds the stripe lock-free.
TEST(LockFreeStripes, go_lock_free_for_singles_again_and_again_and_are_revoked_for_each_bulk) {
  if (!os::join_process_barriers()) GTEST_SKIP() << "this kernel has no barrier for all processes";
  struct Progress {
    std::atomic<bool> is_over;
    std::atomic<std::int64_t> singles;
  };
  const SharedWithRanks<Progress> progress;
  run_ranks(adding_ranks, [&](int rank) {
    const SharedWords shared;
    constexpr int revocations = 6;
    if (rank == 0) {
      for (int revocation = 0; revocation < revocations && !testing::Test::HasFatalFailure(); ++revocation) {
        while (!shared.stripe().is_lock_free()) std::this_thread::yield();
        shared.add_to_all();
      }
      progress->is_over = true;
    }
    while (rank != 0 && !progress->is_over && !testing::Test::HasFatalFailure()) {
      for (std::uint64_t word = 0; word < word_count; ++word) shared.add_single(word);
      ++progress->singles;
    }
    if (testing::Test::HasFatalFailure()) _exit(1);
    EXPECT_EQ(farsum_barrier(farsum_world()), FARSUM_OK);
    shared.expect_everywhere(progress->singles + revocations);
  });
}

TEST(LockFreeStripes, lose_no_update_to_the_owners_agent) {
  Job job;
  job.ranks = adding_ranks;
  job.of_rank = {{}, {{"FARSUM_PATH", "owner"}}, {}};
  run_ranks(job, [](int rank) {
    const SharedWords shared;
    constexpr int rounds = 300;
    for (int round = 0; round < rounds; ++round) {
      if (rank == 1) {
        shared.add_to_all();
      } else {
        for (std::uint64_t word = 0; word < word_count; ++word) shared.add_single(word);
      }
      if (testing::Test::HasFatalFailure()) _exit(1);
    }
    shared.expect_everywhere(std::int64_t{rounds} * adding_ranks);
  });
}

TEST(LockFreeStripes, lose_no_update_to_another_thread_of_the_rank) {
  run_ranks(2, [](int) {
    const SharedWords shared;
    constexpr int rounds = 500;
    const auto work = [&](bool singles) {
      for (int round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
        if (!singles && round % 50 == 0) shared.add_to_all();
        for (std::uint64_t word = 0; word < word_count; ++word) shared.add_single(word);
      }
    };
    std::thread other([&] { work(false); });
    work(true);
    other.join();
    if (testing::Test::HasFatalFailure()) _exit(1);
    shared.expect_everywhere(2 * (2 * std::int64_t{rounds} + rounds / 50));
  });
}

// Answers of fetch-ops are all different, whoever takes the lock and whoever does without.
TEST(LockFreeStripes, give_each_ticket_once) {
  struct Tickets {
    std::atomic<std::uint8_t> taken[60000];
  };
  const SharedWithRanks<Tickets> tickets;
  run_ranks(adding_ranks, [&](int rank) {
    const SharedWords shared;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      const std::int64_t one = 1;
      std::int64_t ticket = -1;
      ASSERT_EQ(farsum_fetch_op(shared.window, 0, 0, &one, &ticket, FARSUM_INT64, FARSUM_SUM), FARSUM_OK);
      ASSERT_TRUE(ticket >= 0 && ticket < adding_ranks * draws);
      ASSERT_EQ(tickets->taken[ticket].fetch_add(1, std::memory_order_relaxed), 0);
      // Two words: no single element, so that the stripe is revoked.
      const std::int64_t nothing[2] = {0, 0};
      if (rank == 2 && i % 1000 == 0) {
        ASSERT_EQ(farsum_accumulate(shared.window, 0, 0, nothing, 2, FARSUM_INT64, FARSUM_SUM), FARSUM_OK);
      }
    }
  });
}

}  // namespace
}  // namespace farsum::test
