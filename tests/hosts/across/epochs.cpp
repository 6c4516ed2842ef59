// Locks, fences, posts and starts, notifications; and that nobody's program has to help.
#include <atomic>

#include "across.hpp"

namespace across {
namespace {

void get_now(farsum_window window, int target, std::uint64_t offset, void* result, std::size_t bytes) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = FARSUM_GET;
  operation.completion = FARSUM_BLOCKING;
  operation.target = target;
  operation.offset = offset;
  operation.count = bytes;
  operation.result = result;
  FINE(farsum_operate(window, &operation, nullptr));
}

// Two words that are equal whenever nobody holds the lock, raised by a get and a put each: any overlap loses a count.
void exclusive_lock(const Job& job) {
  constexpr std::uint64_t each = 200;
  Words words = allocate(2);
  for (std::uint64_t round = 0; round < each; ++round) {
    for (int target = 0; target < job.size; ++target) {
      std::uint64_t both[2] = {};
      FINE(farsum_lock(words.window, target, FARSUM_LOCK_EXCLUSIVE));
      get_now(words.window, target, 0, both, sizeof both);
      equal(both[0], both[1], of("under the lock, the first word", target, round));
      for (std::uint64_t& word : both) ++word;
      FINE(farsum_put(words.window, target, 0, &both[0], 8));
      if (round % 2 == 0) FINE(farsum_flush(words.window, target));
      FINE(farsum_put(words.window, target, 8, &both[1], 8));
      FINE(farsum_unlock(words.window, target));
    }
  }
  barrier();
  FINE(farsum_lock(words.window, job.rank, FARSUM_LOCK_SHARED));
  equal(words.mine[0], each * static_cast<std::uint64_t>(job.size), "the counter under the lock");
  FINE(farsum_unlock(words.window, job.rank));
  release(words.window);
}

// Readers with shared locks beside one writer in four.
void shared_lock(const Job& job) {
  constexpr int rounds = 60;
  Words words = allocate(2);
  std::uint64_t written = 0;
  for (int round = 0; round < rounds; ++round) {
    const bool writes = (round + job.rank) % 4 == 0;
    std::uint64_t both[2] = {};
    FINE(farsum_lock(words.window, 0, writes ? FARSUM_LOCK_EXCLUSIVE : FARSUM_LOCK_SHARED));
    get_now(words.window, 0, 0, both, sizeof both);
    equal(both[0], both[1], "under a lock, the first word");
    if (writes) {
      ++written;
      for (std::uint64_t& word : both) ++word;
      FINE(farsum_put(words.window, 0, 0, both, sizeof both));
    }
    FINE(farsum_unlock(words.window, 0));
  }
  const std::uint64_t all = sum_of(written, job);
  if (job.rank == 0) equal(words.mine[0], all, "what the writers wrote");
  release(words.window);
}

// lock_all of some in turn with exclusive locks of others; each lock, put and unlock in one go.
void lock_all(const Job& job) {
  constexpr int rounds = 100;
  Words words = allocate(1 + static_cast<std::size_t>(job.size));
  const std::uint64_t one = 1;
  for (int round = 0; round < rounds; ++round) {
    if ((round + job.rank) % 2 == 0) {
      FINE(farsum_lock_all(words.window));
      for (int target = 0; target < job.size; ++target) {
        FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        if (round % 3 == 0) FINE(farsum_flush_local(words.window, target));
        FINE(farsum_order(words.window));
      }
      FINE(farsum_unlock_all(words.window));
    } else {
      for (int target = 0; target < job.size; ++target) {
        const std::uint64_t value = mark(job.rank, target, static_cast<std::size_t>(round));
        FINE(farsum_lock(words.window, target, FARSUM_LOCK_EXCLUSIVE));
        FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        FINE(farsum_put(words.window, target, 8 + 8 * static_cast<std::uint64_t>(job.rank), &value, 8));
        FINE(farsum_unlock(words.window, target));
      }
    }
  }
  barrier();
  equal(words.mine[0], static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(job.size), "the sum");
  for (int from = 0; from < job.size; ++from) {
    const std::size_t last = from % 2 == 0 ? rounds - 1 : rounds - 2;
    equal(words.mine[1 + from], mark(from, job.rank, last), of("the last word put", from, last));
  }
  release(words.window);
}

// Beside an exclusive lock that is held throughout, which nobody waits for; then a lock of each, which finds none left.
void unchecked(const Job& job) {
  constexpr std::uint64_t rounds = 50;
  const int holder = job.size - 1;
  Words words = allocate(2);
  const std::uint64_t one = 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (job.rank == holder) {
      FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
      FINE(farsum_accumulate(words.window, 0, 8, &one, 1, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_flush(words.window, 0));  // held from here on
    }
    barrier();
    if (job.rank != holder) {
      for (int target = 0; target < job.size; ++target) {
        FINE(farsum_lock(words.window, target, FARSUM_LOCK_UNCHECKED));
        FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        FINE(farsum_unlock(words.window, target));
      }
      FINE(farsum_lock_all_unchecked(words.window));
      for (int target = 0; target < job.size; ++target)
        FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_unlock_all(words.window));
    }
    barrier();
    equal(words.mine[0], 2 * (round + 1) * static_cast<std::uint64_t>(job.size - 1), "the sum without a lock");
    if (job.rank == holder) FINE(farsum_unlock(words.window, 0));
    FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
    FINE(farsum_unlock(words.window, 0));
    barrier();
  }
  release(words.window);
}

// The right neighbour reads what its left one has posted; in every third round both know of it by a barrier.
void unchecked_start(const Job& job) {
  Words words = allocate(1);
  const int left = (job.rank + job.size - 1) % job.size;
  const int right = (job.rank + 1) % job.size;
  for (std::size_t round = 1; round <= 60; ++round) {
    const bool is_known = round % 3 == 0;
    std::uint64_t read = 0;
    words.mine[0] = mark(job.rank, 0, round);
    FINE(farsum_post(words.window, &right, 1));
    if (is_known) barrier();
    FINE(is_known ? farsum_start_unchecked(words.window, &left, 1) : farsum_start(words.window, &left, 1));
    FINE(farsum_get(words.window, left, 0, &read, sizeof read));
    FINE(farsum_complete(words.window));
    equal(read, mark(left, 0, round), of("what was posted", left, round));
    FINE(farsum_wait_exposure(words.window));
  }
  release(words.window);
}

// Nothing is moved, wherever it would be.
void nothing(const Job& job) {
  Words words = allocate(job.rank % 2 == 0 ? 0 : 1);
  if (job.rank % 2 != 0) words.mine[0] = 4711;
  std::uint64_t word = 1;
  FINE(farsum_fence(words.window, 0));
  for (int target = 0; target < job.size; ++target) {
    FINE(farsum_put(words.window, target, 1'000'000, nullptr, 0));
    FINE(farsum_get(words.window, target, ~std::uint64_t{0}, &word, 0));
    FINE(farsum_accumulate(words.window, target, 1'000'000, &word, 0, FARSUM_UINT64, FARSUM_SUM));
  }
  FINE(farsum_fence(words.window, FARSUM_FENCE_NO_SUCCEED));
  if (job.rank % 2 != 0) equal(words.mine[0], 4711, "the word");
  equal(word, 1, "the origin's word");
  release(words.window);
}

void fence(const Job& job) {
  const auto size = static_cast<std::size_t>(job.size);
  Words words = allocate(size + 1);
  FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE));
  std::vector<std::uint64_t> marks(size);
  for (std::size_t round = 1; round <= 30; ++round) {
    const std::uint64_t one = 1;
    for (int target = 0; target < job.size; ++target) {
      std::uint64_t& value = marks[static_cast<std::size_t>(target)] = mark(job.rank, target, round);
      FINE(farsum_put(words.window, target, 8 * static_cast<std::uint64_t>(job.rank), &value, 8));
      FINE(farsum_accumulate(words.window, target, 8 * size, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    }
    FINE(farsum_fence(words.window, 0));
    for (int from = 0; from < job.size; ++from)
      equal(words.mine[from], mark(from, job.rank, round), of("after the fence, the word", from, round));
    equal(words.mine[size], round * size, "after the fence, the sum");
    FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE));
  }
  FINE(farsum_fence(words.window, FARSUM_FENCE_NO_PRECEDE | FARSUM_FENCE_NO_SUCCEED));
  release(words.window);
}

void expose(farsum_window window, bool by_test) {
  if (!by_test) {
    FINE(farsum_wait_exposure(window));
    return;
  }
  for (int done = 0; done == 0;) FINE(farsum_test_exposure(window, &done));
}

// Each rank gives to its right while it takes from its left.
void ring_of_posts(const Job& job) {
  if (job.size < 2) return;
  const int left = job.left(), right = job.right();
  Words words = allocate(3);
  for (std::uint64_t round = 1; round <= 40; ++round) {
    const std::uint64_t value = mark(job.rank, right, round), one = 1;
    const bool starts_first = (round + static_cast<std::uint64_t>(job.rank)) % 2 == 0;
    if (!starts_first) FINE(farsum_post(words.window, &left, 1));
    FINE(farsum_start(words.window, &right, 1));
    FINE(farsum_put(words.window, right, 0, &value, 8));
    FINE(farsum_accumulate(words.window, right, 8, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    if (starts_first) FINE(farsum_post(words.window, &left, 1));
    FINE(farsum_complete(words.window));
    expose(words.window, round % 3 == 0);
    equal(words.mine[0], mark(left, job.rank, round), of("behind wait, the word", left, round));
    equal(words.mine[1], round, "behind wait, the sum");
  }
  release(words.window);
}

// Rank 0 works on all others at once, then all others on rank 0.
void one_and_all_others(const Job& job) {
  if (job.size < 2) return;
  std::vector<int> others;
  for (int rank = 1; rank < job.size; ++rank) others.push_back(rank);
  const int zero = 0;
  Words words = allocate(1);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const int* mine = job.rank == 0 ? others.data() : &zero;
    const int count = job.rank == 0 ? job.size - 1 : 1;
    const std::uint64_t one = 1;
    for (const bool zero_gives : {true, false}) {
      if ((job.rank == 0) == zero_gives) {
        FINE(farsum_start(words.window, mine, count));
        for (int i = 0; i < count; ++i)
          FINE(farsum_accumulate(words.window, mine[i], 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        FINE(farsum_complete(words.window));
      } else {
        FINE(farsum_post(words.window, mine, count));
        expose(words.window, round % 2 == 0);
        equal(words.mine[0], round * static_cast<std::uint64_t>(count), "behind wait, the sum");
      }
    }
  }
  release(words.window);
}

void notifications(const Job& job) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.notification_slots = 4;
  const auto rows = static_cast<std::size_t>(job.size) + 2;  // no rank is further ahead than the ring is long
  Words words = allocate(8 * rows, farsum_world(), &options);
  FINE(farsum_lock_all(words.window));
  std::vector<std::uint64_t> row(8 * rows);
  for (std::uint64_t round = 1; round <= 60; ++round) {
    const std::size_t place = 8 * (round % rows);
    for (std::size_t i = 0; i < 8; ++i) row[place + i] = mark(job.rank, job.right(), round * 8 + i);
    FINE(farsum_put_notify(words.window, job.right(), place * 8, &row[place], 64, 1));
    FINE(farsum_notify_wait(words.window, 1, round));
    for (std::size_t i = 0; i < 8; ++i)
      equal(words.mine[place + i], mark(job.left(), job.rank, round * 8 + i),
            of("with its notification, word", job.left(), i));
  }
  std::uint64_t value = 0;
  FINE(farsum_notify_value(words.window, 1, &value));
  equal(value, 60, "the notifications");
  FINE(farsum_unlock_all(words.window));
  release(words.window);
}

// Rank 0 makes no call while the others work on it: it looks at its memory until all is there.
void owner_makes_no_call(const Job& job) {
  constexpr std::uint64_t each = 100;
  Words words = allocate(3);
  barrier();
  if (job.rank == 0) {
    const std::atomic_ref<std::uint64_t> sum(words.mine[0]);
    while (sum.load(std::memory_order_acquire) != each * static_cast<std::uint64_t>(job.size - 1)) {
    }
  } else {
    const std::uint64_t one = 1;
    std::uint64_t old = 0;
    for (std::uint64_t i = 0; i < each; ++i) {
      FINE(farsum_lock(words.window, 0, FARSUM_LOCK_EXCLUSIVE));
      FINE(farsum_fetch_op(words.window, 0, 8, &one, &old, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_accumulate(words.window, 0, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
      FINE(farsum_unlock(words.window, 0));
    }
  }
  barrier();
  if (job.rank == 0)
    equal(words.mine[1], each * static_cast<std::uint64_t>(job.size - 1), "what was fetched and added");
  release(words.window);
}

constexpr Case cases[] = {{"exclusive_lock", exclusive_lock},
                          {"shared_lock", shared_lock},
                          {"lock_all", lock_all},
                          {"unchecked", unchecked},
                          {"unchecked_start", unchecked_start},
                          {"nothing", nothing},
                          {"fence", fence},
                          {"ring_of_posts", ring_of_posts},
                          {"one_and_all_others", one_and_all_others},
                          {"notifications", notifications},
                          {"owner_makes_no_call", owner_makes_no_call}};

}  // namespace

std::span<const Case> epoch_cases() { return cases; }

}  // namespace across
