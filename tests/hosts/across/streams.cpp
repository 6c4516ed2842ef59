// Many operations at once: more than rings, frames and credit hold, in order, and by several threads of a rank.
#include <array>
#include <thread>

#include "across.hpp"

namespace across {
namespace {

// Nothing is waited for until the end, so that what finds no room has to be kept and sent later.
void flood(const Job& job) {
  constexpr std::size_t count = 64, each = 30'000;
  Words words = allocate(count);
  FINE(farsum_lock_all(words.window));
  const std::uint64_t one = 1;
  for (std::size_t i = 0; i < each; ++i) {
    for (int target = 0; target < job.size; ++target)
      FINE(farsum_accumulate(words.window, target, 8 * (i % count), &one, 1, FARSUM_UINT64, FARSUM_SUM));
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t all = (each / count + (i < each % count ? 1 : 0)) * static_cast<std::uint64_t>(job.size);
    equal(words.mine[i], all, of("sum", job.rank, i));
  }
  release(words.window);
}

// All put and get long rows of all others at once.
void flood_of_rows(const Job& job) {
  constexpr std::size_t row = 40'000, rows = 12;  // words; 3.7 MB from each to each
  const auto size = static_cast<std::size_t>(job.size);
  Words words = allocate(row * size);
  FINE(farsum_lock_all(words.window));
  std::vector<std::uint64_t> values(row), got(row * rows);
  const std::uint64_t place = 8 * row * static_cast<std::uint64_t>(job.rank);
  for (std::size_t i = 0; i < row; ++i) values[i] = mark(job.rank, 0, i);
  for (std::size_t i = 0; i < rows; ++i) {
    for (int target = 0; target < job.size; ++target) {
      FINE(farsum_put(words.window, target, place, values.data(), row * 8));
      FINE(farsum_flush_local(words.window, target));
    }
  }
  FINE(farsum_flush(words.window, FARSUM_ALL_RANKS));
  for (std::size_t i = 0; i < rows; ++i) FINE(farsum_get(words.window, job.right(), place, &got[i * row], row * 8));
  FINE(farsum_flush(words.window, job.right()));
  for (std::size_t i = 0; i < got.size(); ++i)
    equal(got[i], mark(job.rank, 0, i % row), of("word got", job.right(), i));
  barrier();
  for (std::size_t i = 0; i < row * size; ++i)
    equal(words.mine[i], mark(static_cast<int>(i / row), 0, i % row), of("word put", job.rank, i));
  FINE(farsum_unlock_all(words.window));
  release(words.window);
}

// Accumulates of one rank on one place take effect in program order, whatever their kind.
void program_order(const Job& job) {
  constexpr std::uint64_t each = 500;
  Words words = allocate(static_cast<std::size_t>(job.size));
  FINE(farsum_lock_all(words.window));
  std::vector<std::uint64_t> values(each), fetched(each);
  const std::uint64_t place = 8 * static_cast<std::uint64_t>(job.rank), one = 1;
  for (int target = 0; target < job.size; ++target) {
    for (std::uint64_t i = 0; i < each; ++i) {
      values[i] = 10 * i;
      FINE(farsum_accumulate(words.window, target, place, &values[i], 1, FARSUM_UINT64, FARSUM_REPLACE));
      FINE(farsum_accumulate(words.window, target, place, &one, 1, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_get_accumulate(words.window, target, place, &one, &fetched[i], 1, FARSUM_UINT64, FARSUM_SUM));
    }
    FINE(farsum_flush(words.window, target));
    for (std::uint64_t i = 0; i < each; ++i) equal(fetched[i], 10 * i + 1, of("what was fetched", target, i));
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (int from = 0; from < job.size; ++from) equal(words.mine[from], 10 * (each - 1) + 2, of("word", from, 0));
  release(words.window);
}

constexpr std::size_t thread_count = 4;
constexpr std::uint64_t rounds_of_a_thread = 300;

// A window of its own and one that all share.
void work_as_thread(const Job& job, farsum_window own, farsum_window shared, std::size_t me) {
  const std::uint64_t one = 1;
  std::uint64_t old = 0;
  for (std::uint64_t round = 0; round < rounds_of_a_thread; ++round) {
    const int target = static_cast<int>((round + me) % static_cast<std::uint64_t>(job.size));
    FINE(farsum_accumulate(own, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    FINE(farsum_fetch_op(shared, target, 8 * me, &one, &old, FARSUM_UINT64, FARSUM_SUM));
    FINE(farsum_accumulate(shared, job.right(), 8 * thread_count, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    if (round % 16 == 0) FINE(farsum_flush(own, target));
  }
}

void threads(const Job& job) {
  Words shared = allocate(thread_count + 1);
  std::array<Words, thread_count> own;
  for (Words& words : own) words = allocate(1);
  FINE(farsum_lock_all(shared.window));
  for (const Words& words : own) FINE(farsum_lock_all(words.window));
  std::array<std::string, thread_count> failures;
  std::vector<std::thread> running;
  for (std::size_t me = 0; me < thread_count; ++me) {
    running.emplace_back([&, me] {
      try {
        work_as_thread(job, own[me].window, shared.window, me);
      } catch (const Failed& failed) {
        failures[me] = failed.what();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const std::string& failure : failures) holds(failure.empty(), failure);
  FINE(farsum_unlock_all(shared.window));
  for (const Words& words : own) FINE(farsum_unlock_all(words.window));
  barrier();
  equal(shared.mine[thread_count], thread_count * rounds_of_a_thread, "the sum of all threads of the left");
  for (std::size_t me = 0; me < thread_count; ++me) {
    // Every rank's thread `me` comes to each target equally often, but for the rounds that are left over.
    std::uint64_t expected = 0;
    for (std::uint64_t round = 0; round < rounds_of_a_thread; ++round) {
      const bool is_here = static_cast<int>((round + me) % static_cast<std::uint64_t>(job.size)) == job.rank;
      expected += is_here ? static_cast<std::uint64_t>(job.size) : 0;
    }
    equal(shared.mine[me], expected, of("the counter of thread", job.rank, me));
    equal(own[me].mine[0], expected, of("the sum of thread", job.rank, me));
  }
  for (Words& words : own) release(words.window);
  release(shared.window);
}

constexpr Case cases[] = {
    {"flood", flood}, {"flood_of_rows", flood_of_rows}, {"program_order", program_order}, {"threads", threads}};

}  // namespace

std::span<const Case> stream_cases() { return cases; }

}  // namespace across
