#include "across.hpp"

namespace across {

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const std::span<const Case> some :
       {transfer_cases(), stream_cases(), epoch_cases(), object_cases(), card_cases()})
    cases.insert(cases.end(), some.begin(), some.end());
  return cases;
}

void fine(farsum_status status, const char* call) {
  if (status != FARSUM_OK)
    throw Failed(std::string(call) + ": " + farsum_status_name(status) + ": " + farsum_last_error());
}

void equal(std::uint64_t got, std::uint64_t expected, const std::string& where) {
  if (got != expected) throw Failed(where + " is " + std::to_string(got) + ", not " + std::to_string(expected));
}

void equal(double got, double expected, const std::string& where) {
  if (got != expected) throw Failed(where + " is " + std::to_string(got) + ", not " + std::to_string(expected));
}

void holds(bool truth, const std::string& what) {
  if (!truth) throw Failed(what);
}

std::string of(const char* what, int rank, std::size_t index) {
  return std::string(what) + " " + std::to_string(index) + " of rank " + std::to_string(rank);
}

Words allocate(std::size_t count, farsum_group group, const farsum_window_options* options) {
  Words words;
  void* memory = nullptr;
  FINE(farsum_window_allocate(group, count * sizeof(std::uint64_t), options, &memory, &words.window));
  words.mine = static_cast<std::uint64_t*>(memory);
  return words;
}

void barrier(farsum_group group) { FINE(farsum_barrier(group)); }

void release(farsum_window& window) { FINE(farsum_window_free(&window)); }

std::uint64_t sum_of(std::uint64_t mine, const Job& job) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(job.size));
  FINE(farsum_allgather(farsum_world(), &mine, all.data(), sizeof mine));
  std::uint64_t sum = 0;
  for (const std::uint64_t one : all) sum += one;
  return sum;
}

void equal_tickets(std::span<const std::uint64_t> mine, std::uint64_t all, const Job& job, const std::string& where) {
  std::uint64_t sum = 0, squares = 0, expected_sum = 0, expected_squares = 0;
  for (const std::uint64_t ticket : mine) {
    holds(ticket < all, where + ": ticket " + std::to_string(ticket) + " of " + std::to_string(all));
    sum += ticket;
    squares += ticket * ticket;
  }
  for (std::uint64_t ticket = 0; ticket < all; ++ticket) {
    expected_sum += ticket;
    expected_squares += ticket * ticket;
  }
  equal(sum_of(mine.size(), job), all, where + ": the number of tickets");
  equal(sum_of(sum, job), expected_sum, where + ": the sum of the tickets");
  equal(sum_of(squares, job), expected_squares, where + ": the sum of their squares");
}

}  // namespace across
