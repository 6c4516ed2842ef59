// `across`: a program over farsum.h alone whose ranks may run on several hosts. Each case checks sums or values that
// are wrong as soon as one byte is lost, doubled, or somewhere else. tests/hosts/run_across starts it.
#pragma once

#include <farsum.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace across {

// What ends the program with status 1 and this sentence.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Job {
  int rank = 0;
  int size = 1;
  std::vector<std::string> words;  // of the command line, behind the case

  int right() const { return (rank + 1) % size; }
  int left() const { return (rank + size - 1) % size; }
};

using Body = void (*)(const Job&);

struct Case {
  const char* name;
  Body body;
};

std::span<const Case> transfer_cases();
std::span<const Case> stream_cases();
std::span<const Case> epoch_cases();
std::span<const Case> object_cases();
std::span<const Case> card_cases();
// All of these, in turn.
std::vector<Case> every_case();
// Started by their names only: where there are cards.
std::span<const Case> named_card_cases();
// Started by their names only: they need somebody who does something to the hosts.
std::span<const Case> fault_cases();

void fine(farsum_status status, const char* call);

// The sentence begins with where.
void equal(std::uint64_t got, std::uint64_t expected, const std::string& where);
void equal(double got, double expected, const std::string& where);
void holds(bool truth, const std::string& what);

// "X of rank R", for the sentences.
std::string of(const char* what, int rank, std::size_t index);

struct Words {
  farsum_window window{};
  std::uint64_t* mine = nullptr;
  farsum_mutex mutex{};  // of the waits for one
  farsum_counter counter{};
};
Words allocate(std::size_t count, farsum_group group = farsum_world(), const farsum_window_options* options = nullptr);
void barrier(farsum_group group = farsum_world());
void release(farsum_window& window);

// Of all ranks of the job.
std::uint64_t sum_of(std::uint64_t mine, const Job& job);
// That the numbers 0 to all - 1 were drawn, each once: `count` of them by this rank, with this sum and sum of squares.
void equal_tickets(std::span<const std::uint64_t> mine, std::uint64_t all, const Job& job, const std::string& where);

// A value that names who sent it, to whom, and the place.
inline std::uint64_t mark(int from, int to, std::size_t index) {
  return (static_cast<std::uint64_t>(from) + 1) << 40 | (static_cast<std::uint64_t>(to) + 1) << 20 | index;
}

}  // namespace across

#define FINE(call) across::fine((call), #call)
