// What runs while somebody cuts links, stops or kills ranks (tests/hosts/faults.py). A rank that is ready says so on
// stdout and then waits for a file, so that what happens has an order without a clock.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "across.hpp"
#include "collective_of.hpp"
#include "common/file_meeting.hpp"

namespace across {
namespace {

void say(const Job& job, const std::string& what) {
  std::printf("rank %d: %s\n", job.rank, what.c_str());
  std::fflush(stdout);
}

// Words: two files. Every rank adds to the words of all others, fetches and puts, until the first is there; then each
// sum must be what all have sent. A rank says "streaming" when it has begun. A rank that finds the second file, with
// its number behind the name, removes it and says "has gone on" after the next round.
void stream(const Job& job) {
  constexpr std::size_t count = 64;
  const std::string& until = job.words.at(0);
  Words words = allocate(count + 1 + static_cast<std::size_t>(job.size));
  FINE(farsum_lock_all(words.window));
  const std::vector<std::uint64_t> ones(count, 1);
  const std::string asked = job.words.at(1) + std::to_string(job.rank);
  std::uint64_t rounds = 0, drawn = 0, last = 0;
  while (access(until.c_str(), F_OK) != 0) {
    const bool is_asked = unlink(asked.c_str()) == 0;
    for (int target = 0; target < job.size; ++target) {
      if (target == job.rank) continue;
      const std::uint64_t one = 1;
      FINE(farsum_accumulate(words.window, target, 0, ones.data(), count, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_accumulate(words.window, target, 0, ones.data(), 1, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_fetch_op(words.window, target, 8 * count, &one, &drawn, FARSUM_UINT64, FARSUM_SUM));
      const std::uint64_t told = rounds + 1;
      FINE(farsum_put(words.window, target, 8 * (count + 1 + static_cast<std::uint64_t>(job.rank)), &told, 8));
      FINE(farsum_flush(words.window, target));
      if (job.size == 2) holds(rounds == 0 || drawn == last + 1, "a number was drawn twice or is missing");
      last = drawn;
    }
    if (rounds++ == 0) say(job, "streaming");
    if (is_asked) say(job, "has gone on");
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  const std::uint64_t others = sum_of(rounds, job) - rounds;
  for (std::size_t i = 0; i < count; ++i) equal(words.mine[i], (i == 0 ? 2 : 1) * others, of("sum", job.rank, i));
  equal(words.mine[count], others, "the numbers drawn");
  say(job, "rounds " + std::to_string(rounds));
  release(words.window);
}

constexpr std::uint64_t more_than_queues_hold = 300'000;

// Words: a case, a file. The case again and again until the file is there; "going on" tells that it was through once.
void again(const Job& job) {
  const std::string& name = job.words.at(0);
  const std::vector<Case> known = every_case();
  const auto wanted = std::find_if(known.begin(), known.end(), [&](const Case& one) { return name == one.name; });
  if (wanted == known.end()) throw Failed("there is no case " + name + " (across list)");
  std::uint64_t rounds = 0;
  for (std::uint8_t is_over = 0; is_over == 0;) {
    wanted->body(job);
    if (rounds++ == 0) say(job, "going on");
    if (job.rank == 0 && access(job.words.at(1).c_str(), F_OK) == 0) is_over = 1;
    FINE(farsum_broadcast(farsum_world(), &is_over, 1, 0));
  }
  say(job, "rounds " + std::to_string(rounds));
}

// Words: two files. Once the first is there rank 0 sends more than any queue holds, and says when it could post all of
// it. The ranks stay until the second is there.
void fill_queue(const Job& job) {
  Words words = allocate(1);
  FINE(farsum_lock_all(words.window));
  barrier();
  say(job, "ready");
  if (job.rank == 0) {
    meeting::wait_for_file(job.words.at(0));
    const std::uint64_t one = 1;
    for (std::uint64_t i = 0; i < more_than_queues_hold; ++i)
      FINE(farsum_accumulate(words.window, 1, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    say(job, "posted all");
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  if (job.rank == 1) equal(words.mine[0], more_than_queues_hold, "the sum of what was sent");
  if (job.rank == 0) meeting::wait_for_file(job.words.at(1));
  barrier();
  release(words.window);
}

// Words: a file. All begin sums, short and long. Rank 1 then makes no call until the file is there; the others wait for
// theirs and say so.
void begin_and_compute(const Job& job) {
  constexpr std::size_t counts[] = {1, 20'000};
  std::vector<std::uint64_t> mine(counts[1], mark(job.rank, 0, 0)), sums[2];
  farsum_request requests[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    sums[i].resize(counts[i]);
    const farsum_collective collective = farsum::test::allreduce_of(mine.data(), sums[i].data(), counts[i]);
    FINE(farsum_collect(farsum_world(), &collective, &requests[i]));
  }
  if (job.rank == 1) meeting::wait_for_file(job.words.at(0));
  for (farsum_request& request : requests) FINE(farsum_wait(&request));
  std::uint64_t expected = 0;
  for (int rank = 0; rank < job.size; ++rank) expected += mark(rank, 0, 0);
  for (const std::vector<std::uint64_t>& sum : sums) {
    for (std::size_t i = 0; i < sum.size(); ++i) equal(sum[i], expected, of("sum", job.rank, i));
  }
  say(job, "answered");
}

// What rank 0 waits in when rank 1 cannot be reached, and what both do before.
struct Wait {
  std::function<void(const Job&, Words&)> before;
  std::function<farsum_status(Words&)> call;
};

const std::uint64_t word = 1;  // lives as long as operations may read it

farsum_status put_and(Words& words, farsum_status (*then)(Words&)) {
  const farsum_status put = farsum_put(words.window, 1, 0, &word, 8);
  return put == FARSUM_OK ? then(words) : put;
}

farsum_status put_with_request(Words& words, farsum_request& request) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = FARSUM_PUT;
  operation.completion = FARSUM_EXPLICIT;
  operation.target = 1;
  operation.count = sizeof word;
  operation.origin = &word;
  return farsum_operate(words.window, &operation, &request);
}

void lock_all_of(const Job&, Words& words) { FINE(farsum_lock_all(words.window)); }

void lock_of_rank_1(const Job& job, Words& words) {
  if (job.rank == 0) FINE(farsum_lock(words.window, 1, FARSUM_LOCK_EXCLUSIVE));
}

void held_by_rank_1(const Job& job, Words& words) {
  if (job.rank == 1) FINE(farsum_lock(words.window, 1, FARSUM_LOCK_EXCLUSIVE));
}

// Mutex 0 of rank `owner`, held by `holder`.
void hold_mutex(const Job& job, Words& words, int owner, int holder) {
  FINE(farsum_mutex_create(farsum_world(), 1, &words.mutex));
  if (job.rank == holder) FINE(farsum_mutex_lock(words.mutex, owner, 0));
}

void nothing(const Job&, Words&) {}

constexpr std::size_t many = 131'072;

// An operation of `count` words and a flush of its target.
farsum_status operate(Words& words, farsum_kind kind, std::size_t count) {
  static std::vector<std::uint64_t> operands(many, 1), results(many);
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.target = 1;
  operation.count = count;
  operation.type = FARSUM_UINT64;
  operation.op = FARSUM_SUM;
  operation.origin = operands.data();
  operation.result = results.data();
  operation.compare = operands.data();
  const farsum_status begun = farsum_operate(words.window, &operation, nullptr);
  return begun == FARSUM_OK ? farsum_flush(words.window, 1) : begun;
}

void post_to_rank_1(const Job& job, Words& words) {
  const int one = 1;
  if (job.rank == 0) FINE(farsum_post(words.window, &one, 1));
}

void start_of_rank_0(const Job& job, Words& words) {
  const int zero = 0, one = 1;
  if (job.rank == 1) FINE(farsum_post(words.window, &zero, 1));
  if (job.rank == 0) FINE(farsum_start(words.window, &one, 1));
}

const std::map<std::string, Wait>& waits() {
  static const std::map<std::string, Wait> all = {
      {"flush", {lock_all_of, [](Words& w) { return put_and(w, [](Words& v) { return farsum_flush(v.window, 1); }); }}},
      {"fetch_op",
       {lock_all_of,
        [](Words& w) {
          std::uint64_t old = 0;
          return farsum_fetch_op(w.window, 1, 0, &word, &old, FARSUM_UINT64, FARSUM_SUM);
        }}},
      {"wait",
       {lock_all_of,
        [](Words& w) {
          farsum_request request{};
          const farsum_status begun = put_with_request(w, request);
          return begun == FARSUM_OK ? farsum_wait(&request) : begun;
        }}},
      {"get", {lock_all_of, [](Words& w) { return operate(w, FARSUM_GET, 1); }}},
      {"get_accumulate", {lock_all_of, [](Words& w) { return operate(w, FARSUM_GET_ACCUMULATE, many); }}},
      {"compare_and_swap", {lock_all_of, [](Words& w) { return operate(w, FARSUM_COMPARE_AND_SWAP, 1); }}},
      {"accumulate_1_mib", {lock_all_of, [](Words& w) { return operate(w, FARSUM_ACCUMULATE, many); }}},
      {"test",
       {lock_all_of,
        [](Words& w) {
          farsum_request request{};
          farsum_status status = put_with_request(w, request);
          for (int done = 0; status == FARSUM_OK && done == 0;) status = farsum_test(&request, &done);
          return status;
        }}},
      {"full_queue",
       {lock_all_of,
        [](Words& w) {
          // A put that waited for room may say so, or the flush.
          farsum_status put = FARSUM_OK;
          for (std::uint64_t i = 0; i < more_than_queues_hold && put == FARSUM_OK; ++i)
            put = farsum_put(w.window, 1, 0, &word, 8);
          return put != FARSUM_OK ? put : farsum_flush(w.window, 1);
        }}},
      {"unlock_all",
       {lock_all_of, [](Words& w) { return put_and(w, [](Words& v) { return farsum_unlock_all(v.window); }); }}},
      {"unlock",
       {lock_of_rank_1, [](Words& w) { return put_and(w, [](Words& v) { return farsum_unlock(v.window, 1); }); }}},
      {"lock_and_flush",
       {held_by_rank_1,
        [](Words& w) {
          const farsum_status locked = farsum_lock(w.window, 1, FARSUM_LOCK_EXCLUSIVE);
          return locked != FARSUM_OK ? locked : put_and(w, [](Words& v) { return farsum_flush(v.window, 1); });
        }}},
      {"lock_behind_a_lock",
       {held_by_rank_1,
        [](Words& w) {
          const farsum_status locked = farsum_lock(w.window, 1, FARSUM_LOCK_SHARED);
          return locked != FARSUM_OK ? locked : farsum_lock(w.window, 0, FARSUM_LOCK_SHARED);
        }}},
      {"lock_all_and_flush",
       {nothing,
        [](Words& w) {
          const farsum_status locked = farsum_lock_all(w.window);
          return locked != FARSUM_OK ? locked : put_and(w, [](Words& v) { return farsum_flush(v.window, 1); });
        }}},
      {"mutex_lock",
       {[](const Job& job, Words& w) { hold_mutex(job, w, 1, 1); },
        [](Words& w) { return farsum_mutex_lock(w.mutex, 1, 0); }}},
      {"mutex_lock_here",
       {[](const Job& job, Words& w) { hold_mutex(job, w, 0, 1); },
        [](Words& w) { return farsum_mutex_lock(w.mutex, 0, 0); }}},
      {"mutex_unlock",
       {[](const Job& job, Words& w) { hold_mutex(job, w, 1, 0); },
        [](Words& w) { return farsum_mutex_unlock(w.mutex, 1, 0); }}},
      {"barrier", {nothing, [](Words&) { return farsum_barrier(farsum_world()); }}},
      {"allgather",
       {nothing,
        [](Words&) {
          std::uint64_t gathered[2];
          return farsum_allgather(farsum_world(), &word, gathered, 8);
        }}},
      {"allreduce",
       {nothing,
        [](Words&) {
          std::uint64_t sum = 0;
          return farsum_allreduce(farsum_world(), &word, &sum, 1, FARSUM_UINT64, FARSUM_SUM);
        }}},
      {"collect",
       {nothing,
        [](Words&) {
          std::uint64_t sum = 0;
          const farsum_collective collective = farsum::test::allreduce_of(&word, &sum, 1);
          farsum_request request{};
          const farsum_status begun = farsum_collect(farsum_world(), &collective, &request);
          return begun == FARSUM_OK ? farsum_wait(&request) : begun;
        }}},
      {"broadcast",
       {nothing,
        [](Words&) {
          std::uint64_t told = 0;
          return farsum_broadcast(farsum_world(), &told, sizeof told, 1);
        }}},
      {"counter_next",
       {[](const Job&, Words& w) {
          farsum_counter_options options{};
          options.struct_bytes = sizeof options;
          options.home = 1;
          FINE(farsum_counter_create(farsum_world(), &options, &w.counter));
        },
        [](Words& w) {
          std::uint64_t ticket = 0;
          return farsum_counter_next(w.counter, &ticket);
        }}},
      {"fence", {nothing, [](Words& w) { return farsum_fence(w.window, 0); }}},
      {"wait_exposure", {post_to_rank_1, [](Words& w) { return farsum_wait_exposure(w.window); }}},
      {"complete",
       {start_of_rank_0, [](Words& w) { return put_and(w, [](Words& v) { return farsum_complete(v.window); }); }}},
      {"notify_wait", {lock_all_of, [](Words& w) { return farsum_notify_wait(w.window, 0, 1); }}},
      {"window_allocate",
       {nothing,
        [](Words&) {
          void* memory = nullptr;
          farsum_window window{};
          return farsum_window_allocate(farsum_world(), 8, nullptr, &memory, &window);
        }}},
      {"window_free", {nothing, [](Words& w) { return farsum_window_free(&w.window); }}},
      {"finalize", {nothing, [](Words&) { return farsum_finalize(); }}}};
  return all;
}

// Words: one of `waits`, a file. Once the file is there rank 0 makes the call and says how it ended; rank 1 makes none.
void wait_in(const Job& job) {
  const auto found = waits().find(job.words.at(0));
  if (found == waits().end()) throw Failed("there is no such wait");
  Words words = allocate(many);
  found->second.before(job, words);
  barrier();
  say(job, "ready");
  if (job.rank != 0) {
    while (true) pause();
  }
  meeting::wait_for_file(job.words.at(1));
  const auto begin = std::chrono::steady_clock::now();
  const farsum_status status = found->second.call(words);
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  say(job, std::string("ended ") + found->first + " after " + std::to_string(taken.count()) +
               " ms: " + farsum_status_name(status) + ": " + (status == FARSUM_OK ? "" : farsum_last_error()));
  std::_Exit(status == FARSUM_OK ? 1 : 0);
}

constexpr Case cases[] = {{"stream", stream},
                          {"again", again},
                          {"fill_queue", fill_queue},
                          {"wait_in", wait_in},
                          {"begin_and_compute", begin_and_compute}};

}  // namespace

std::span<const Case> fault_cases() { return cases; }

}  // namespace across
