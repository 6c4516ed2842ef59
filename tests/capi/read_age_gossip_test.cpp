// Reads that are answered from copies, among four ranks that change each other's memory and tell each other at random:
// none finds less than it was told of.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>

#include "rank_processes.hpp"
#include "read_age.hpp"
#include "several_nodes.hpp"
#include "sim/seeds.hpp"

namespace farsum::test {
namespace {

constexpr int steps = 60;
constexpr std::size_t slots_of_writer = 3;
using Known = std::array<std::array<std::array<std::uint64_t, slots_of_writer>, most_ranks>, most_ranks>;

void learn(Known& known, const Known& told) {
  for (std::size_t writer = 0; writer < most_ranks; ++writer) {
    for (std::size_t at_rank = 0; at_rank < most_ranks; ++at_rank) {
      for (std::size_t slot = 0; slot < slots_of_writer; ++slot)
        known[writer][at_rank][slot] = std::max(known[writer][at_rank][slot], told[writer][at_rank][slot]);
    }
  }
}

// What ranks tell each other of what they know. Only Farsum orders who writes and reads it.
struct Board {
  Known told[steps][most_ranks];
  Known under_mutex, under_lock;
  std::atomic<std::uint64_t> answered;  // by copies, of all ranks
};

// Each rank puts growing versions into its words of everybody's part, and knows least versions of all words: its own,
// and those that it was told of.
class Gossip {
 public:
  Gossip(int rank, std::uint64_t seed, Board& board)
      : rank_(rank), common_(seed), own_(seed * most_ranks + static_cast<std::uint64_t>(rank)), board_(board) {}

  void run() {
    const farsum_window_options options = aged();
    void* memory = nullptr;
    ASSERT_FINE(farsum_memory_allocate(8 * words_of_part, &memory));
    std::fill_n(static_cast<std::uint64_t*>(memory), words_of_part, 0);
    for (farsum_window& window : windows_) {
      ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 8 * words_of_part, &options, &window));
      ASSERT_FINE(farsum_lock_all(window));
    }
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 8 * words_of_part, &options, &locks_));
    ASSERT_FINE(farsum_mutex_create(farsum_world(), 1, &mutex_));
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("rank " + std::to_string(rank_) + ", step " + std::to_string(step));
      work();
      tell_and_hear(step);
    }
    // Whoever has failed does not come to the collective calls: its end tells the others.
    if (testing::Test::HasFailure()) return;
    board_.answered.fetch_add(statistics().reads_answered, std::memory_order_relaxed);
    ASSERT_FINE(farsum_mutex_free(&mutex_));
    ASSERT_FINE(farsum_window_free(&locks_));
    for (farsum_window& window : windows_) {
      ASSERT_FINE(farsum_unlock_all(window));
      ASSERT_FINE(farsum_window_free(&window));
    }
    ASSERT_FINE(farsum_memory_free(memory));
  }

 private:
  // Most in one block, at both of its ends, some in the next.
  static std::size_t word_of(int writer, std::size_t slot) {
    const std::size_t starts[slots_of_writer] = {0, words_of_block - most_ranks, words_of_block};
    return starts[slot] + static_cast<std::size_t>(writer);
  }
  static std::size_t flag_of(int writer) { return flag + static_cast<std::size_t>(writer); }
  int any_rank(std::mt19937_64& random) { return static_cast<int>(random() % most_ranks); }
  farsum_window any_window() { return windows_[own_() % 2]; }
  std::uint64_t& known(int writer, int at_rank, std::size_t slot) {
    return known_[static_cast<std::size_t>(writer)][static_cast<std::size_t>(at_rank)][slot];
  }

  void work() {
    const int target = any_rank(own_);
    for (std::size_t i = own_() % 12; i != 0; --i) {
      if (own_() % 8 == 0)
        change();
      else
        read_some(own_() % 3 == 0 ? any_rank(own_) : target);
    }
  }
  void change() {
    const farsum_window window = any_window();
    const int target = any_rank(own_);
    const std::size_t slot = own_() % slots_of_writer;
    const std::uint64_t place = at(word_of(rank_, slot));
    const std::uint64_t version = ++version_;
    if (own_() % 2 == 0)
      EXPECT_FINE(farsum_put(window, target, place, &version, sizeof version));
    else
      EXPECT_FINE(farsum_accumulate(window, target, place, &version, 1, FARSUM_UINT64, FARSUM_MAX));
    if (own_() % 2 == 0) {
      std::uint64_t found = 0;
      EXPECT_FINE(farsum_get(window, target, place, &found, sizeof found));
      EXPECT_FINE(farsum_flush(window, target));
      EXPECT_EQ(found, version) << "its own, at once";
    }
    EXPECT_FINE(farsum_flush(window, own_() % 2 == 0 ? target : FARSUM_ALL_RANKS));
    known(rank_, target, slot) = version;
  }
  void read_some(int target) {
    struct Read {
      int writer;
      std::size_t slot;
      std::uint64_t least, found;
    };
    std::array<Read, 4> reads{};
    const farsum_window window = any_window();
    const std::size_t count = 1 + own_() % reads.size();
    for (std::size_t i = 0; i < count; ++i) {
      Read& one = reads[i];
      one.writer = any_rank(own_);
      one.slot = own_() % slots_of_writer;
      one.least = known(one.writer, target, one.slot);
      const std::uint64_t place = at(word_of(one.writer, one.slot));
      if (own_() % 2 == 0)
        EXPECT_FINE(farsum_get(window, target, place, &one.found, sizeof one.found));
      else
        EXPECT_FINE(farsum_get_accumulate(window, target, place, nullptr, &one.found, 1, FARSUM_UINT64, FARSUM_NO_OP));
    }
    EXPECT_FINE(farsum_flush(window, target));
    for (std::size_t i = 0; i < count; ++i) {
      const Read& one = reads[i];
      EXPECT_GE(one.found, one.least) << "of rank " << one.writer << " in rank " << target << ", slot " << one.slot;
    }
  }

  // All ranks draw the same.
  void tell_and_hear(int step) {
    const std::uint64_t means = common_() % 5;
    const int teller = any_rank(common_);
    const int hearer = (teller + 1 + static_cast<int>(common_() % (most_ranks - 1))) % most_ranks;
    const bool looks_only = common_() % 2 == 0;
    Known(&told)[most_ranks] = board_.told[step];
    if (means == 0 || rank_ == teller) told[rank_] = known_;
    switch (means) {
      case 0:
        EXPECT_FINE(farsum_barrier(farsum_world()));
        for (const Known& one : told) learn(known_, one);
        return;
      case 1:
        ++flags_[static_cast<std::size_t>(teller)];
        if (rank_ == teller) {
          count_up();
        } else {
          await_count(teller, flags_[static_cast<std::size_t>(teller)], looks_only);
          learn(known_, told[teller]);
        }
        return;
      case 2:
        if (rank_ == teller) {
          const std::uint64_t nothing = 0;
          EXPECT_FINE(farsum_put_notify(windows_[0], hearer, at(flag + most_ranks), &nothing, sizeof nothing,
                                        static_cast<std::uint32_t>(teller)));
          EXPECT_FINE(farsum_flush(windows_[0], hearer));
        } else if (rank_ == hearer) {
          EXPECT_FINE(farsum_notify_wait(windows_[0], static_cast<std::uint32_t>(teller),
                                         ++notified_[static_cast<std::size_t>(teller)]));
          learn(known_, told[teller]);
        }
        return;
      case 3:
        EXPECT_FINE(farsum_mutex_lock(mutex_, teller, 0));
        // One board for all of them: only that of one rank is used.
        if (teller == 1) exchange_with(board_.under_mutex);
        EXPECT_FINE(farsum_mutex_unlock(mutex_, teller, 0));
        return;
      default:
        EXPECT_FINE(farsum_lock(locks_, 2, FARSUM_LOCK_EXCLUSIVE));
        // Waits for the lock.
        (void)read(locks_, 2, flag);
        exchange_with(board_.under_lock);
        EXPECT_FINE(farsum_unlock(locks_, 2));
    }
  }
  void exchange_with(Known& board) {
    learn(known_, board);
    board = known_;
  }
  // A word of its own part.
  void count_up() {
    const std::uint64_t one = 1;
    std::uint64_t before = 0;
    EXPECT_FINE(farsum_fetch_op(windows_[0], rank_, at(flag_of(rank_)), &one, &before, FARSUM_UINT64, FARSUM_SUM));
  }
  void await_count(int teller, std::uint64_t count, bool looks_only) {
    const std::uint64_t nothing = 0;
    std::uint64_t found = 0;
    while (found < count) {
      ASSERT_FINE(farsum_fetch_op(windows_[0], teller, at(flag_of(teller)), &nothing, &found, FARSUM_UINT64,
                                  looks_only ? FARSUM_NO_OP : FARSUM_SUM));
    }
  }

  int rank_;
  std::mt19937_64 common_, own_;
  Board& board_;
  farsum_window windows_[2]{};
  farsum_window locks_{};
  farsum_mutex mutex_{};
  std::uint64_t version_ = 0;
  Known known_{};
  std::array<std::uint64_t, most_ranks> flags_{};
  std::array<std::uint64_t, most_ranks> notified_{};
};

// Takes seconds: copies grow old.
TEST(ReadAge, never_answers_with_less_than_a_rank_was_told_of) {
  for_each_seed(6, [](std::uint64_t seed) {
    const SharedWithRanks<Board> board;
    run_embedded(two_nodes, [&](int rank, Gathering& everybody) {
      Caller caller{&everybody, rank};
      const farsum_init_options options = options_of(caller);
      ASSERT_FINE(farsum_init(&options));
      Gossip(rank, seed, *board).run();
      if (testing::Test::HasFailure()) _exit(1);
      ASSERT_FINE(farsum_finalize());
    });
    EXPECT_GT(board->answered.load(), 0u);
  });
}

}  // namespace
}  // namespace farsum::test
