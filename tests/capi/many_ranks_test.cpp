// What a node of 128 ranks does, and a rank that attaches ten thousand pieces of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "rank_processes.hpp"

namespace farsum::test {
namespace {

constexpr int many_ranks = 128;

struct Part {
  std::uint64_t sum;
  std::uint64_t from_left;
  std::uint64_t tickets;
};

// The sum of what all ranks add: each its number and one.
constexpr std::uint64_t sum_of_all = std::uint64_t{many_ranks} * (many_ranks + 1) / 2;

// Locks of all, sums into all parts, and tickets of one of them.
void sum_under_locks(farsum_window window, Part& mine, int rank) {
  const auto operand = static_cast<std::uint64_t>(rank + 1);
  ASSERT_FINE(farsum_lock_all(window));
  for (int target = 0; target < many_ranks; ++target) {
    ASSERT_FINE(farsum_accumulate(window, target, offsetof(Part, sum), &operand, 1, FARSUM_UINT64, FARSUM_SUM));
  }
  std::uint64_t ticket = many_ranks;
  const std::uint64_t one = 1;
  ASSERT_FINE(farsum_fetch_op(window, 0, offsetof(Part, tickets), &one, &ticket, FARSUM_UINT64, FARSUM_SUM));
  ASSERT_FINE(farsum_unlock_all(window));
  EXPECT_LT(ticket, std::uint64_t{many_ranks});
  ASSERT_FINE(farsum_barrier(farsum_world()));
  EXPECT_EQ(mine.sum, sum_of_all);
  EXPECT_EQ(mine.tickets, rank == 0 ? std::uint64_t{many_ranks} : 0U);
}

void put_between_fences(farsum_window window, const Part& mine, int rank) {
  const auto own = static_cast<std::uint64_t>(rank);
  ASSERT_FINE(farsum_fence(window, 0));
  ASSERT_FINE(farsum_put(window, (rank + 1) % many_ranks, offsetof(Part, from_left), &own, sizeof own));
  ASSERT_FINE(farsum_fence(window, 0));
  EXPECT_EQ(mine.from_left, static_cast<std::uint64_t>((rank + many_ranks - 1) % many_ranks));
}

void lock_the_first_alone(farsum_window window, const Part& mine, int rank) {
  const std::uint64_t one = 1;
  ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE));
  std::uint64_t tickets = 0;
  ASSERT_FINE(farsum_get(window, 0, offsetof(Part, tickets), &tickets, sizeof tickets));
  ASSERT_FINE(farsum_flush(window, 0));
  tickets += one;
  ASSERT_FINE(farsum_put(window, 0, offsetof(Part, tickets), &tickets, sizeof tickets));
  ASSERT_FINE(farsum_unlock(window, 0));
  ASSERT_FINE(farsum_barrier(farsum_world()));
  EXPECT_EQ(mine.tickets, rank == 0 ? std::uint64_t{2 * many_ranks} : 0U);
}

void use_window(farsum_window window, Part& mine, int rank) {
  mine = {};
  ASSERT_FINE(farsum_barrier(farsum_world()));
  sum_under_locks(window, mine, rank);
  put_between_fences(window, mine, rank);
  ASSERT_FINE(farsum_fence(window, FARSUM_FENCE_NO_SUCCEED));
  lock_the_first_alone(window, mine, rank);
  ASSERT_FINE(farsum_window_free(&window));
}

TEST(OneHundredAndTwentyEightRanks, make_use_and_free_windows_of_both_kinds) {
  run_ranks(many_ranks, [](int rank) {
    void* memory = nullptr;
    farsum_window window;
    ASSERT_FINE(farsum_window_allocate(farsum_world(), sizeof(Part), nullptr, &memory, &window));
    use_window(window, *static_cast<Part*>(memory), rank);
    static Part adopted;
    ASSERT_FINE(farsum_window_adopt(farsum_world(), &adopted, sizeof adopted, nullptr, &window));
    use_window(window, adopted, rank);
  });
}

constexpr std::size_t piece_count = 10'000;
constexpr std::size_t words_apart = 4;  // of the starts of pieces, each of one word

std::uint64_t address_of(const std::uint64_t* word) { return reinterpret_cast<std::uintptr_t>(word); }

// Up from the lowest, and the other half down from the highest.
std::size_t piece_at(std::size_t turn) { return turn % 2 == 0 ? turn / 2 : piece_count - 1 - turn / 2; }

void add_to_pieces(farsum_window window, std::uint64_t first, std::size_t step) {
  const std::uint64_t one = 1;
  ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
  for (std::size_t piece = 0; piece < piece_count; piece += step) {
    const std::uint64_t offset = first + piece * words_apart * sizeof(std::uint64_t);
    ASSERT_FINE(farsum_accumulate(window, 0, offset, &one, 1, FARSUM_UINT64, FARSUM_SUM));
  }
  ASSERT_FINE(farsum_flush(window, 0));
  std::uint64_t word = 0;
  EXPECT_REFUSED(farsum_get(window, 0, first + sizeof word, &word, sizeof word), FARSUM_ERR_RANGE, testing::_);
  ASSERT_FINE(farsum_unlock(window, 0));
}

TEST(Attachments, of_ten_thousand_pieces_are_reached_and_go_one_by_one) {
  run_ranks(2, [](int rank) {
    farsum_window window;
    std::vector<std::uint64_t> memory(piece_count * words_apart);
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
    if (rank == 0) {
      for (std::size_t turn = 0; turn < piece_count; ++turn)
        ASSERT_FINE(farsum_window_attach(window, &memory[piece_at(turn) * words_apart], sizeof(std::uint64_t)));
    }
    std::uint64_t first = address_of(memory.data());
    ASSERT_FINE(farsum_broadcast(farsum_world(), &first, sizeof first, 0));
    constexpr std::size_t step = 37;
    if (rank == 1) add_to_pieces(window, first, step);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 0) {
      for (std::size_t piece = 0; piece < piece_count; ++piece)
        ASSERT_EQ(memory[piece * words_apart], piece % step == 0 ? 1U : 0U) << piece;
      for (std::size_t turn = 0; turn < piece_count; ++turn) {
        if (piece_at(turn) == 0) continue;
        ASSERT_FINE(farsum_window_detach(window, &memory[piece_at(turn) * words_apart]));
      }
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 1) {
      std::uint64_t word = 0;
      ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
      EXPECT_FINE(farsum_get(window, 0, first, &word, sizeof word));
      EXPECT_REFUSED(farsum_get(window, 0, first + words_apart * sizeof word, &word, sizeof word), FARSUM_ERR_RANGE,
                     testing::_);
      ASSERT_FINE(farsum_unlock(window, 0));
      EXPECT_EQ(word, 1U);
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
}

}  // namespace
}  // namespace farsum::test
