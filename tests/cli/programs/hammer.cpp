// A program of a job: all ranks take one exclusive lock again and again and count under it, then draw tickets from one
// word, then do both at once. Rank 0 prints what came of it; every rank fails if anything was lost or given twice.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "farsum.h"

namespace {

constexpr std::uint64_t counted_at = 0, tickets_at = 64, part_bytes = 128;

void check(farsum_status status) {
  if (status == FARSUM_OK) return;
  std::fprintf(stderr, "%s\n", farsum_last_error());
  std::exit(1);
}

void expect(std::uint64_t found, std::uint64_t wanted, const char* what) {
  if (found == wanted) return;
  std::fprintf(stderr, "%s: %llu instead of %llu\n", what, static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(wanted));
  std::exit(1);
}

void count_under_the_lock(farsum_window window) {
  check(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE));
  std::uint64_t value = 0;
  check(farsum_get(window, 0, counted_at, &value, sizeof value));
  check(farsum_flush(window, 0));
  ++value;
  check(farsum_put(window, 0, counted_at, &value, sizeof value));
  check(farsum_unlock(window, 0));
}

std::uint64_t draw_ticket(farsum_window window) {
  const std::uint64_t one = 1;
  std::uint64_t ticket = 0;
  check(farsum_fetch_op(window, 0, tickets_at, &one, &ticket, FARSUM_UINT64, FARSUM_SUM));
  check(farsum_flush(window, 0));
  return ticket;
}

// Under the shared locks of all, which wait for the exclusive one and hold it up.
std::uint64_t draw_under_lock_all(farsum_window window) {
  check(farsum_lock_all(window));
  const std::uint64_t ticket = draw_ticket(window);
  check(farsum_unlock_all(window));
  return ticket;
}

std::uint64_t word_at(farsum_window window, std::uint64_t offset) {
  std::uint64_t value = 0;
  check(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
  check(farsum_get(window, 0, offset, &value, sizeof value));
  check(farsum_unlock(window, 0));
  return value;
}

// All ranks' tickets are 0, 1, 2 ..., each once.
void expect_each_once(const std::vector<std::uint64_t>& mine, std::uint64_t all) {
  int size = 0;
  check(farsum_size(farsum_world(), &size));
  std::vector<std::uint64_t> gathered(mine.size() * static_cast<std::size_t>(size));
  check(farsum_allgather(farsum_world(), mine.data(), gathered.data(), mine.size() * sizeof mine[0]));
  std::vector<bool> is_drawn(all);
  for (const std::uint64_t ticket : gathered) {
    if (ticket >= all || is_drawn[ticket]) expect(ticket, all, "a ticket that was drawn twice, or is none");
    is_drawn[ticket] = true;
  }
}

}  // namespace

int main(int, char** arguments) {
  const auto rounds = static_cast<std::uint64_t>(std::atoll(arguments[1]));
  check(farsum_init(nullptr));
  int rank = 0, size = 0;
  check(farsum_rank(farsum_world(), &rank));
  check(farsum_size(farsum_world(), &size));
  farsum_window window{};
  void* memory = nullptr;
  check(farsum_window_allocate(farsum_world(), part_bytes, nullptr, &memory, &window));
  const std::uint64_t all = rounds * static_cast<std::uint64_t>(size);
  std::vector<std::uint64_t> tickets;
  for (std::uint64_t i = 0; i < rounds; ++i) count_under_the_lock(window);
  check(farsum_lock_all(window));
  for (std::uint64_t i = 0; i < rounds; ++i) tickets.push_back(draw_ticket(window));
  check(farsum_unlock_all(window));
  for (std::uint64_t i = 0; i < rounds; ++i) {
    count_under_the_lock(window);
    tickets.push_back(draw_under_lock_all(window));
  }
  check(farsum_barrier(farsum_world()));
  expect(word_at(window, counted_at), 2 * all, "counted under the lock");
  expect(word_at(window, tickets_at), 2 * all, "tickets drawn");
  expect_each_once(tickets, 2 * all);
  if (rank == 0) std::printf("%llu counted, %llu drawn\n", 2ULL * all, 2ULL * all);
  check(farsum_window_free(&window));
  check(farsum_finalize());
  return 0;
}
