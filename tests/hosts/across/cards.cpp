// Windows that are declared network-only: every operation is a card's where there are cards, and as anywhere else where
// there are none. Both must count and move the same.
#include <algorithm>
#include <numeric>

#include "across.hpp"

namespace across {
namespace {

constexpr farsum_window_options network_only{.struct_bytes = sizeof(farsum_window_options),
                                             .promises = FARSUM_NETWORK_ONLY,
                                             .notification_slots = 0,
                                             .aggregate_limit = 0,
                                             .name = nullptr,
                                             .read_age_ms = 0,
                                             .alignment = 0,
                                             .layer = nullptr};
constexpr int rounds = 100;

// Every rank adds to a word of every rank, its own and its neighbours' among them, and draws tickets.
void sums_and_tickets(const Job& job, farsum_window window, const std::uint64_t* mine) {
  const std::uint64_t one = 1;
  std::vector<std::uint64_t> tickets(rounds);
  FINE(farsum_lock_all(window));
  for (int round = 0; round < rounds; ++round) {
    for (int target = 0; target < job.size; ++target)
      FINE(farsum_accumulate(window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    FINE(farsum_fetch_op(window, 0, 8, &one, &tickets[static_cast<std::size_t>(round)], FARSUM_UINT64, FARSUM_SUM));
  }
  FINE(farsum_flush(window, FARSUM_ALL_RANKS));
  barrier();
  equal(mine[0], static_cast<std::uint64_t>(rounds * job.size), of("word", job.rank, 0));
  equal_tickets(tickets, static_cast<std::uint64_t>(rounds * job.size), job, "network-only");
  FINE(farsum_unlock_all(window));
}

// What no card computes: the largest, and sums of doubles and of 32 bits.
void computed_sums(const Job& job, farsum_window window, const std::uint64_t* mine) {
  constexpr std::size_t count = 300;
  const std::vector<double> halves(count, 0.5);
  const std::vector<std::int32_t> threes(2, 3);
  const auto largest = static_cast<std::uint64_t>(job.rank);
  FINE(farsum_lock_all(window));
  for (int target = 0; target < job.size; ++target) {
    FINE(farsum_accumulate(window, target, 1024, halves.data(), count, FARSUM_DOUBLE, FARSUM_SUM));
    FINE(farsum_accumulate(window, target, 16, &largest, 1, FARSUM_UINT64, FARSUM_MAX));
    FINE(farsum_accumulate(window, target, 24, threes.data(), 2, FARSUM_INT32, FARSUM_SUM));
  }
  FINE(farsum_unlock_all(window));
  barrier();
  FINE(farsum_sync(window));
  const auto* values = reinterpret_cast<const double*>(mine + 128);
  for (std::size_t i = 0; i < count; ++i) equal(values[i], 0.5 * job.size, of("double", job.rank, i));
  equal(mine[2], static_cast<std::uint64_t>(job.size - 1), of("largest", job.rank, 0));
  const auto threefold = static_cast<std::uint64_t>(3 * job.size);
  equal(mine[3], threefold << 32 | threefold, of("pair", job.rank, 0));
}

// Whoever has the lock finds what the one before it has put, whole.
void locked_puts(const Job& job, farsum_window window) {
  constexpr std::size_t count = 512;
  std::vector<std::uint64_t> row(count), next(count);
  for (int round = 0; round < rounds; ++round) {
    FINE(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE));
    FINE(farsum_get(window, 0, 4096, row.data(), 8 * count));
    FINE(farsum_flush_local(window, 0));
    for (std::size_t i = 0; i < count; ++i) holds(row[i] == row[0], "a row that was put is found torn");
    std::ranges::fill(next, row[0] + 1);
    FINE(farsum_put(window, 0, 4096, next.data(), 8 * count));
    FINE(farsum_unlock(window, 0));
  }
  barrier();
  FINE(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
  FINE(farsum_get(window, 0, 4096, row.data(), 8 * count));
  FINE(farsum_unlock(window, 0));
  equal(row[count - 1], static_cast<std::uint64_t>(rounds * job.size), "the row after all turns");
}

// A notification comes behind the data.
void notified_puts(const Job& job, farsum_window window, const std::uint64_t* mine) {
  constexpr std::size_t count = 512;
  std::vector<std::uint64_t> row(count);
  FINE(farsum_lock_all(window));
  for (std::uint64_t round = 1; round <= 20; ++round) {
    std::iota(row.begin(), row.end(), mark(job.rank, job.right(), round));
    FINE(farsum_put_notify(window, job.right(), 8192, row.data(), 8 * count, 3));
    FINE(farsum_notify_wait(window, 3, round));
    FINE(farsum_sync(window));
    for (std::size_t i = 0; i < count; ++i)
      equal(mine[1024 + i], mark(job.left(), job.rank, round) + i, of("notified word", job.rank, i));
    barrier();
  }
  FINE(farsum_unlock_all(window));
}

void work(const Job& job) {
  Words words = allocate(2048, farsum_world(), &network_only);
  sums_and_tickets(job, words.window, words.mine);
  computed_sums(job, words.window, words.mine);
  locked_puts(job, words.window);
  notified_puts(job, words.window, words.mine);
  barrier();
  release(words.window);
}

std::uint64_t done_by_cards() {
  farsum_statistics statistics{};
  statistics.struct_bytes = sizeof statistics;
  FINE(farsum_statistics_read(&statistics));
  return statistics.operations[FARSUM_PATH_OFFLOAD];
}

// One that no card has says so.
void tells_its_path(const Job& job) {
  Words words = allocate(1, farsum_world(), &network_only);
  for (int rank = 0; rank < job.size; ++rank) {
    farsum_region_info info{};
    FINE(farsum_window_region(words.window, rank, 0, &info));
    holds(std::string(info.reason).find("declared network-only") != std::string::npos, info.reason);
  }
  release(words.window);
}

void network_only_windows(const Job& job) {
  for (int i = 0; i < 2; ++i) work(job);
  tells_its_path(job);
}

// Where there must be cards; memory of the program's may be out of their reach, and then counts all the same.
void by_cards(const Job& job) {
  const std::uint64_t before = done_by_cards();
  network_only_windows(job);
  holds(done_by_cards() - before >= 2U * rounds, "no card did it");
  Words words = allocate(2, farsum_world(), &network_only);
  const double number[2] = {1, 2};
  FINE(farsum_lock_all(words.window));
  holds(farsum_accumulate(words.window, 0, 0, number, 1, FARSUM_COMPLEX_DOUBLE, FARSUM_SUM) == FARSUM_ERR_UNSUPPORTED,
        "no card sums 16 bytes at once");
  FINE(farsum_unlock_all(words.window));
  equal(words.mine[0], std::uint64_t{0}, "what was refused");
  release(words.window);
  std::vector<std::uint64_t> own(2048);
  farsum_window window{};
  FINE(farsum_window_adopt(farsum_world(), own.data(), 8 * own.size(), &network_only, &window));
  sums_and_tickets(job, window, own.data());
  release(window);
}

constexpr Case cases[] = {{"network_only", network_only_windows}};
constexpr Case named_cases[] = {{"by_cards", by_cards}};

}  // namespace

std::span<const Case> card_cases() { return cases; }
std::span<const Case> named_card_cases() { return named_cases; }

}  // namespace across
