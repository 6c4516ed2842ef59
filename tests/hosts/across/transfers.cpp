// Operations under lock_all: each rank works on every rank, itself among them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "across.hpp"

namespace across {
namespace {

std::byte pattern(int from, int to, std::size_t index) {
  return static_cast<std::byte>(1 +
                                (static_cast<std::size_t>(from) * 7 + static_cast<std::size_t>(to) * 3 + index) % 255);
}

void check_row(const std::byte* row, int from, int to, std::size_t bytes, const char* what) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (row[i] != pattern(from, to, i))
      throw Failed(of(what, from, i) + " at rank " + std::to_string(to) + " is " +
                   std::to_string(static_cast<int>(row[i])) + ", not " +
                   std::to_string(static_cast<int>(pattern(from, to, i))));
  }
}

// Rows of `bytes` bytes that start at odd places, with gaps that must stay zero.
void put_and_get_rows(const Job& job, std::size_t bytes) {
  const std::size_t pitch = bytes + 3;
  const std::size_t total = pitch * static_cast<std::size_t>(job.size);
  void* memory = nullptr;
  farsum_window window{};
  FINE(farsum_window_allocate(farsum_world(), total, nullptr, &memory, &window));
  FINE(farsum_lock_all(window));
  std::vector<std::vector<std::byte>> rows(static_cast<std::size_t>(job.size), std::vector<std::byte>(bytes));
  const std::size_t place = static_cast<std::size_t>(job.rank) * pitch + 1;
  for (int target = 0; target < job.size; ++target) {
    std::vector<std::byte>& row = rows[static_cast<std::size_t>(target)];
    for (std::size_t i = 0; i < bytes; ++i) row[i] = pattern(job.rank, target, i);
    FINE(farsum_put(window, target, place, row.data(), bytes));
  }
  FINE(farsum_flush(window, FARSUM_ALL_RANKS));
  barrier();
  FINE(farsum_sync(window));
  std::vector<std::byte> copy(total);
  for (int target = 0; target < job.size; ++target) {
    std::ranges::fill(copy, std::byte{255});
    FINE(farsum_get(window, target, 0, copy.data(), total));
    FINE(farsum_flush_local(window, target));
    for (int from = 0; from < job.size; ++from) {
      const std::byte* row = copy.data() + static_cast<std::size_t>(from) * pitch;
      check_row(row + 1, from, target, bytes, "byte that was got");
      holds(row[0] == std::byte{} && row[bytes + 1] == std::byte{}, "a put wrote beside its place");
    }
  }
  for (int from = 0; from < job.size; ++from) {
    check_row(static_cast<std::byte*>(memory) + static_cast<std::size_t>(from) * pitch + 1, from, job.rank, bytes,
              "byte that was put");
  }
  FINE(farsum_unlock_all(window));
  release(window);
}

void put_and_get(const Job& job) {
  for (const std::size_t bytes : {1U, 8U, 100U, 4096U, 12345U, 70001U}) put_and_get_rows(job, bytes);
}

void put_and_get_1_mib(const Job& job) { put_and_get_rows(job, 1U << 20); }

template <class Number>
void accumulate_sums(const Job& job, farsum_type type, std::size_t count, int rounds) {
  void* memory = nullptr;
  farsum_window window{};
  FINE(farsum_window_allocate(farsum_world(), count * sizeof(Number), nullptr, &memory, &window));
  FINE(farsum_lock_all(window));
  std::vector<Number> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<Number>(i % 100 + static_cast<std::size_t>(job.rank));
  for (int round = 0; round < rounds; ++round) {
    for (int target = 0; target < job.size; ++target)
      FINE(farsum_accumulate(window, target, 0, numbers.data(), count, type, FARSUM_SUM));
    if (round % 8 == 7) FINE(farsum_flush(window, FARSUM_ALL_RANKS));
  }
  FINE(farsum_flush(window, FARSUM_ALL_RANKS));
  barrier();
  FINE(farsum_sync(window));
  const auto size = static_cast<std::size_t>(job.size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t expected = static_cast<std::size_t>(rounds) * (size * (i % 100) + size * (size - 1) / 2);
    equal(static_cast<double>(static_cast<const Number*>(memory)[i]), static_cast<double>(expected),
          of("sum", job.rank, i));
  }
  FINE(farsum_unlock_all(window));
  release(window);
}

void accumulate(const Job& job) {
  accumulate_sums<std::uint64_t>(job, FARSUM_UINT64, 1, 200);
  accumulate_sums<std::int32_t>(job, FARSUM_INT32, 1001, 10);
  accumulate_sums<double>(job, FARSUM_DOUBLE, 5000, 10);
  accumulate_sums<float>(job, FARSUM_FLOAT, 77, 20);
}

void accumulate_1_mib(const Job& job) { accumulate_sums<double>(job, FARSUM_DOUBLE, 131072, 3); }

void operators(const Job& job) {
  Words words = allocate(4);
  if (job.rank == 0) words.mine[1] = ~std::uint64_t{0};
  barrier();
  FINE(farsum_lock_all(words.window));
  const std::uint64_t bit = std::uint64_t{1} << job.rank % 64;
  const std::uint64_t rest = ~bit;
  const auto number = static_cast<std::uint64_t>(job.rank) + 5;
  const double alpha = 0.5, two = 2.0;
  FINE(farsum_accumulate(words.window, 0, 0, &bit, 1, FARSUM_UINT64, FARSUM_BOR));
  FINE(farsum_accumulate(words.window, 0, 8, &rest, 1, FARSUM_UINT64, FARSUM_BAND));
  FINE(farsum_accumulate(words.window, 0, 16, &number, 1, FARSUM_UINT64, FARSUM_MAX));
  farsum_operation scaled{};
  scaled.struct_bytes = sizeof scaled;
  scaled.kind = FARSUM_ACCUMULATE;
  scaled.completion = FARSUM_BLOCKING;
  scaled.offset = 24;
  scaled.type = FARSUM_DOUBLE;
  scaled.op = FARSUM_SCALED_SUM;
  scaled.count = 1;
  scaled.origin = &two;
  scaled.alpha = &alpha;
  FINE(farsum_operate(words.window, &scaled, nullptr));
  FINE(farsum_unlock_all(words.window));
  barrier();
  if (job.rank == 0) {
    std::uint64_t bits = 0;
    for (int rank = 0; rank < job.size; ++rank) bits |= std::uint64_t{1} << rank % 64;
    equal(words.mine[0], bits, "the or of all");
    equal(words.mine[1], ~bits, "the and of all");
    equal(words.mine[2], static_cast<std::uint64_t>(job.size) + 4, "the greatest of all");
    double sum = 0;
    std::memcpy(&sum, &words.mine[3], sizeof sum);
    equal(sum, static_cast<double>(job.size), "the sum of halves of two");
  }
  release(words.window);
}

void fetch_op(const Job& job) {
  constexpr std::uint64_t each = 200;
  Words words = allocate(1);
  FINE(farsum_lock_all(words.window));
  const std::uint64_t one = 1;
  const auto all = each * static_cast<std::uint64_t>(job.size);
  for (int target = 0; target < job.size; ++target) {
    std::vector<std::uint64_t> tickets(each);
    for (std::uint64_t& ticket : tickets)
      FINE(farsum_fetch_op(words.window, target, 0, &one, &ticket, FARSUM_UINT64, FARSUM_SUM));
    holds(std::ranges::is_sorted(tickets, std::less_equal<>{}), "a later ticket is not greater");
    equal_tickets(tickets, all, job, of("the counter", target, 0));
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  equal(words.mine[0], all, "the counter at the end");
  release(words.window);
}

void compare_and_swap(const Job& job) {
  constexpr std::uint64_t each = 50;
  Words words = allocate(1);
  FINE(farsum_lock_all(words.window));
  for (int target = 0; target < job.size; ++target) {
    std::uint64_t seen = 0;
    for (std::uint64_t done = 0; done < each;) {
      const std::uint64_t expected = seen, desired = seen + 1;
      FINE(farsum_compare_and_swap(words.window, target, 0, &expected, &desired, &seen, FARSUM_UINT64));
      if (seen == expected) ++done, ++seen;
    }
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  equal(words.mine[0], each * static_cast<std::uint64_t>(job.size), "the word that was swapped up");
  release(words.window);
}

void get_accumulate(const Job& job) {
  constexpr std::size_t count = 500, rounds = 20;
  Words words = allocate(count);
  FINE(farsum_lock_all(words.window));
  const std::vector<std::uint64_t> ones(count, 1);
  std::vector<std::uint64_t> old(count * rounds);
  for (int target = 0; target < job.size; ++target) {
    for (std::size_t round = 0; round < rounds; ++round) {
      FINE(farsum_get_accumulate(words.window, target, 0, ones.data(), &old[round * count], count, FARSUM_UINT64,
                                 FARSUM_SUM));
    }
    FINE(farsum_flush(words.window, target));
    for (const std::size_t element : {std::size_t{0}, count / 2, count - 1}) {
      std::vector<std::uint64_t> tickets;
      for (std::size_t round = 0; round < rounds; ++round) tickets.push_back(old[round * count + element]);
      equal_tickets(tickets, rounds * static_cast<std::uint64_t>(job.size), job, of("element", target, element));
    }
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (std::size_t i = 0; i < count; ++i)
    equal(words.mine[i], rounds * static_cast<std::uint64_t>(job.size), of("element", job.rank, i));
  release(words.window);
}

void operate(farsum_window window, farsum_kind kind, int target, std::uint64_t offset, const farsum_layout& there,
             const std::uint64_t* origin, std::uint64_t* result) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.target = target;
  operation.offset = offset;
  operation.type = kind == FARSUM_ACCUMULATE ? FARSUM_UINT64 : FARSUM_BYTE;
  operation.op = FARSUM_SUM;
  operation.origin = origin;
  operation.result = result;
  operation.target_layout = &there;
  FINE(farsum_operate(window, &operation, nullptr));
}

// The words at `places` of each rank's part are put, added to and got; all others stay zero.
void through_layout(const Job& job, const farsum_layout& layout, const std::vector<std::size_t>& places,
                    std::size_t words_each) {
  const auto size = static_cast<std::size_t>(job.size);
  Words words = allocate(words_each * size);
  FINE(farsum_lock_all(words.window));
  std::vector<std::vector<std::uint64_t>> marks(size, std::vector<std::uint64_t>(places.size()));
  const std::vector<std::uint64_t> ones(places.size(), 1);
  const std::uint64_t offset = words_each * 8 * static_cast<std::uint64_t>(job.rank);
  for (int target = 0; target < job.size; ++target) {
    std::vector<std::uint64_t>& values = marks[static_cast<std::size_t>(target)];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = mark(job.rank, target, i);
    operate(words.window, FARSUM_PUT, target, offset, layout, values.data(), nullptr);
    FINE(farsum_flush(words.window, target));
    operate(words.window, FARSUM_ACCUMULATE, target, offset, layout, ones.data(), nullptr);
  }
  FINE(farsum_flush(words.window, FARSUM_ALL_RANKS));
  std::vector<std::uint64_t> got(places.size());
  for (int target = 0; target < job.size; ++target) {
    operate(words.window, FARSUM_GET, target, offset, layout, nullptr, got.data());
    FINE(farsum_flush(words.window, target));
    for (std::size_t i = 0; i < got.size(); ++i)
      equal(got[i], mark(job.rank, target, i) + 1, of("word got", target, i));
  }
  barrier();
  FINE(farsum_sync(words.window));
  for (int from = 0; from < job.size; ++from) {
    std::vector<std::uint64_t> expected(words_each);
    for (std::size_t i = 0; i < places.size(); ++i) expected[places[i]] = mark(from, job.rank, i) + 1;
    for (std::size_t i = 0; i < words_each; ++i)
      equal(words.mine[static_cast<std::size_t>(from) * words_each + i], expected[i], of("word", from, i));
  }
  FINE(farsum_unlock_all(words.window));
  release(words.window);
}

// Blocks of two words, a patch of a matrix of matrices.
void strided(const Job& job) {
  constexpr std::size_t rows = 30, columns = 5, planes = 4;
  const std::size_t counts[] = {columns, rows, planes};
  const std::int64_t strides[] = {3 * 8, 20 * 8, 20 * 32 * 8};
  farsum_layout layout{};
  layout.kind = FARSUM_STRIDED;
  layout.bytes = 16;
  layout.levels = 3;
  layout.counts = counts;
  layout.strides = strides;
  std::vector<std::size_t> places;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t first = plane * 640 + row * 20 + column * 3;
        places.insert(places.end(), {first, first + 1});
      }
    }
  }
  through_layout(job, layout, places, planes * 640);
}

void indexed(const Job& job) {
  constexpr std::size_t pieces = 700;
  std::vector<std::int64_t> offsets;
  std::vector<std::size_t> lengths, places;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t slot = piece * 277 % pieces;  // in no order, each once
    offsets.push_back(static_cast<std::int64_t>(slot * 4 * 8));
    lengths.push_back(8 * (1 + slot % 3));
    for (std::size_t word = 0; word < 1 + slot % 3; ++word) places.push_back(slot * 4 + word);
  }
  farsum_layout layout{};
  layout.kind = FARSUM_INDEXED;
  layout.pieces = pieces;
  layout.offsets = offsets.data();
  layout.lengths = lengths.data();
  through_layout(job, layout, places, pieces * 4);
}

void requests(const Job& job) {
  constexpr std::size_t count = 40;
  Words words = allocate(count * static_cast<std::size_t>(job.size));
  FINE(farsum_lock_all(words.window));
  std::vector<std::uint64_t> values(count), back(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = mark(job.rank, job.right(), i);
  std::vector<farsum_request> under_way(count);
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.completion = FARSUM_EXPLICIT;
  operation.target = job.right();
  operation.count = 8;
  const auto issue = [&](std::size_t i) {
    operation.offset = (static_cast<std::size_t>(job.rank) * count + i) * 8;
    operation.origin = &values[i];
    operation.result = &back[i];
    FINE(farsum_operate(words.window, &operation, &under_way[i]));
  };
  operation.kind = FARSUM_PUT;
  for (std::size_t i = 0; i < count; ++i) issue(i);
  for (farsum_request& request : under_way) FINE(farsum_wait(&request));
  FINE(farsum_flush(words.window, job.right()));
  operation.kind = FARSUM_GET;
  for (std::size_t i = 0; i < count; ++i) issue(i);
  for (farsum_request& request : under_way) {
    for (int done = 0; done == 0;) FINE(farsum_test(&request, &done));
  }
  for (std::size_t i = 0; i < count; ++i) equal(back[i], values[i], of("word got", job.right(), i));
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (std::size_t i = 0; i < count; ++i)
    equal(words.mine[static_cast<std::size_t>(job.left()) * count + i], mark(job.left(), job.rank, i),
          of("word put", job.left(), i));
  release(words.window);
}

// A long put of rank 0, which computes from then on until the target has seen it all, and a little longer. Whether it
// was done at rank 0's first look.
bool is_done_at_the_first_look(const Job& job, const Words& words, std::size_t count, std::uint64_t attempt) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds patience(20'000), for_the_answer(100);
  const int target = job.size - 1;
  const auto value_of = [&](std::size_t i) { return mark(0, target, i) + attempt; };
  const auto is_at = [&](std::size_t i, std::uint64_t value) {
    return std::atomic_ref(words.mine[i]).load(std::memory_order_acquire) == value;
  };
  int done = 0;
  if (job.rank == 0) {
    std::vector<std::uint64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value_of(i);
    farsum_operation operation{};
    operation.struct_bytes = sizeof operation;
    operation.kind = FARSUM_PUT;
    operation.completion = FARSUM_EXPLICIT;
    operation.target = target;
    operation.origin = values.data();
    operation.count = count * 8;
    farsum_request request{};
    FINE(farsum_operate(words.window, &operation, &request));
    for (const auto begin = Clock::now(); !is_at(count, attempt);)
      holds(Clock::now() - begin < patience, "the put waits for a call of its origin");
    for (const auto begin = Clock::now(); Clock::now() - begin < for_the_answer;) {
    }
    FINE(farsum_test(&request, &done));
    if (done == 0) FINE(farsum_wait(&request));
  } else if (job.rank == target) {
    for (std::size_t i = 0; i < count; ++i) {
      while (!is_at(i, value_of(i))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FINE(farsum_put(words.window, 0, 8 * count, &attempt, 8));
    FINE(farsum_flush(words.window, 0));
  }
  FINE(farsum_broadcast(farsum_world(), &done, sizeof done, 0));
  return done != 0;
}

// More than leaves at once arrives though its origin makes no call, and so does the answer: on a machine with other
// work perhaps not each time.
void origin_computes(const Job& job) {
  constexpr std::size_t count = 1 << 20;
  constexpr std::uint64_t most_attempts = 10;
  if (job.size == 1) return;
  Words words = allocate(count + 1);
  FINE(farsum_lock_all(words.window));
  bool is_done = false;
  for (std::uint64_t attempt = 1; !is_done && attempt <= most_attempts; ++attempt)
    is_done = is_done_at_the_first_look(job, words, count, attempt);
  holds(is_done, "the answer waits for a call of the put's origin");
  FINE(farsum_unlock_all(words.window));
  barrier();
  release(words.window);
}

// Every rank's part has another size, one none at all; what lies outside is refused and changes nothing.
void ranges(const Job& job) {
  Words words = allocate(static_cast<std::size_t>(job.rank) * 3);
  FINE(farsum_lock_all(words.window));
  const std::uint64_t value = 7;
  for (int target = 0; target < job.size; ++target) {
    const std::uint64_t end = static_cast<std::uint64_t>(target) * 24;
    const farsum_status refused = farsum_put(words.window, target, end, &value, 8);
    holds(refused == FARSUM_ERR_RANGE, of("a put past the end", target, end) + ": " + farsum_status_name(refused));
    if (end != 0) FINE(farsum_accumulate(words.window, target, end - 8, &value, 1, FARSUM_UINT64, FARSUM_SUM));
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (std::size_t i = 0; i < static_cast<std::size_t>(job.rank) * 3; ++i) {
    const bool is_last = i + 1 == static_cast<std::size_t>(job.rank) * 3;
    equal(words.mine[i], is_last ? 7 * static_cast<std::uint64_t>(job.size) : 0, of("word", job.rank, i));
  }
  release(words.window);
}

constexpr Case cases[] = {{"put_and_get", put_and_get},
                          {"put_and_get_1_mib", put_and_get_1_mib},
                          {"accumulate", accumulate},
                          {"accumulate_1_mib", accumulate_1_mib},
                          {"operators", operators},
                          {"fetch_op", fetch_op},
                          {"compare_and_swap", compare_and_swap},
                          {"get_accumulate", get_accumulate},
                          {"strided", strided},
                          {"indexed", indexed},
                          {"requests", requests},
                          {"origin_computes", origin_computes},
                          {"ranges", ranges}};

}  // namespace

std::span<const Case> transfer_cases() { return cases; }

}  // namespace across
