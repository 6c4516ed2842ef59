#include "workout.hpp"

#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "ops/half.hpp"
#include "ops/kernels.hpp"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

// The arithmetic itself is tested in tests/ops against a reference of its own; here the scalar kernels are the
// reference for the paths.
const ops::KernelSet& reference() { return ops::kernels(ops::Isa::baseline); }

void apply(farsum_type type, farsum_op op, std::byte* target, const std::byte* operand, std::byte* old,
           std::size_t count, const std::byte* alpha) {
  reference().fetch(static_cast<ops::ElementType>(type), static_cast<ops::Operator>(op))(target, operand, old, count,
                                                                                         alpha);
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// A small number as an element of a type: results stay exact in all of them.
void set_element(farsum_type type, std::byte* to, Random& random) {
  std::memset(to, 0, farsum_type_size(type));
  const auto number = static_cast<int>(pick(random, 0, 6)) - 3;
  const auto natural = static_cast<unsigned>(pick(random, 0, 5));
  switch (type) {
    case FARSUM_BYTE:
    case FARSUM_UINT8:
      return store(to, static_cast<std::uint8_t>(natural));
    case FARSUM_BOOL:
      return store(to, static_cast<std::uint8_t>(natural & 1));
    case FARSUM_INT8:
      return store(to, static_cast<std::int8_t>(number));
    case FARSUM_INT16:
      return store(to, static_cast<std::int16_t>(number));
    case FARSUM_UINT16:
      return store(to, static_cast<std::uint16_t>(natural));
    case FARSUM_INT32:
      return store(to, static_cast<std::int32_t>(number));
    case FARSUM_UINT32:
      return store(to, static_cast<std::uint32_t>(natural));
    case FARSUM_INT64:
      return store(to, static_cast<std::int64_t>(number));
    case FARSUM_UINT64:
      return store(to, static_cast<std::uint64_t>(natural));
    case FARSUM_FLOAT:
      return store(to, static_cast<float>(number));
    case FARSUM_DOUBLE:
      return store(to, static_cast<double>(number));
    case FARSUM_LONG_DOUBLE:
      return store(to, static_cast<long double>(number));
    case FARSUM_COMPLEX_FLOAT:
      store(to, static_cast<float>(number));
      return store(to + sizeof(float), static_cast<float>(natural));
    case FARSUM_COMPLEX_DOUBLE:
      store(to, static_cast<double>(number));
      return store(to + sizeof(double), static_cast<double>(natural));
    case FARSUM_COMPLEX_LONG_DOUBLE:
      store(to, static_cast<long double>(number));
      return store(to + sizeof(long double), static_cast<long double>(natural));
    case FARSUM_FLOAT_INT:
      return store(to, ops::ValueIndex<float>{static_cast<float>(number), static_cast<int>(natural)});
    case FARSUM_DOUBLE_INT:
      return store(to, ops::ValueIndex<double>{static_cast<double>(number), static_cast<int>(natural)});
    case FARSUM_LONG_INT:
      return store(to, ops::ValueIndex<long>{number, static_cast<int>(natural)});
    case FARSUM_INT_INT:
      return store(to, ops::ValueIndex<int>{number, static_cast<int>(natural)});
    case FARSUM_SHORT_INT:
      return store(to, ops::ValueIndex<short>{static_cast<short>(number), static_cast<int>(natural)});
    case FARSUM_LONG_DOUBLE_INT:
      return store(to, ops::ValueIndex<long double>{static_cast<long double>(number), static_cast<int>(natural)});
    case FARSUM_FLOAT_FLOAT:
      return store(to, ops::ValueIndex<float, float>{static_cast<float>(number), static_cast<float>(natural)});
    case FARSUM_DOUBLE_DOUBLE:
      return store(to, ops::ValueIndex<double, double>{static_cast<double>(number), static_cast<double>(natural)});
    case FARSUM_FLOAT128:
      return store(to, static_cast<ops::Float128>(number));
    case FARSUM_COMPLEX_FLOAT128:
      store(to, static_cast<ops::Float128>(number));
      return store(to + sizeof(ops::Float128), static_cast<ops::Float128>(natural));
    case FARSUM_INT128:
      return store(to, static_cast<ops::Int128>(number));
    case FARSUM_FLOAT16:
      return store(to, ops::to_half(static_cast<float>(number)));
  }
}

// Bytes of an element that mean something; the rest is padding, which may come out as it likes.
struct Meaning {
  std::size_t first, bytes, second, second_bytes;
};
Meaning meaning_of(farsum_type type) {
  switch (type) {
    case FARSUM_LONG_DOUBLE:
      return {0, 10, 0, 0};
    case FARSUM_COMPLEX_LONG_DOUBLE:
      return {0, 10, 16, 10};
    case FARSUM_DOUBLE_INT:
    case FARSUM_LONG_INT:
      return {0, 8, 8, 4};
    case FARSUM_SHORT_INT:
      return {0, 2, 4, 4};
    case FARSUM_LONG_DOUBLE_INT:
      return {0, 10, 16, 4};
    default:
      return {0, farsum_type_size(type), 0, 0};
  }
}
bool same(farsum_type type, const std::byte* a, const std::byte* b) {
  const Meaning meaning = meaning_of(type);
  return std::memcmp(a, b, meaning.bytes) == 0 &&
         std::memcmp(a + meaning.second, b + meaning.second, meaning.second_bytes) == 0;
}

// How an operation is completed.
enum Mode { blocking, wait, test, flush_one, flush_local, flush_all, mode_count };

ElementList any_list(Random& random, std::size_t elements, std::size_t room, std::size_t element_bytes) {
  return pick(random, 0, 1) == 0 || elements == room ? ElementList::contiguous(elements, element_bytes)
                                                     : ElementList::indexed(random, elements, room, element_bytes);
}

// A buffer that holds a list's room, 16-byte aligned.
struct Buffer {
  explicit Buffer(std::size_t bytes, unsigned char fill = 0xee) : bytes_(bytes), memory_((bytes + 16) / 16) {
    std::memset(memory_.data(), fill, memory_.size() * sizeof(Chunk));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(memory_.data()); }
  std::size_t size() const { return bytes_; }

 private:
  struct alignas(16) Chunk {
    std::byte bytes[16];
  };
  std::size_t bytes_;
  std::vector<Chunk> memory_;
};

}  // namespace

Workout::Workout(int rank, ExposedMemory& memory, std::size_t part_bytes, Expected& expected)
    : rank_(rank),
      memory_(memory),
      slice_bytes_((part_bytes - shared_words * 8) / workout_ranks / 64 * 64),
      shared_begin_(part_bytes - shared_words * 8),
      expected_(expected),
      random_(static_cast<std::uint64_t>(rank) + 1) {
  for (const View& view : memory_.views()) EXPECT_FINE(farsum_lock_all(view.window));
  EXPECT_FINE(farsum_barrier(farsum_world()));
}

void Workout::issue(const View& view, farsum_operation& operation, int mode) {
  operation.struct_bytes = sizeof operation;
  operation.offset +=
      view.base[static_cast<std::size_t>(operation.target)] + static_cast<std::uint64_t>(rank_) * slice_bytes_;
  operation.completion = mode == blocking               ? FARSUM_BLOCKING
                         : mode == wait || mode == test ? FARSUM_EXPLICIT
                                                        : FARSUM_IMPLICIT;
  farsum_request request{};
  ASSERT_FINE(farsum_operate(view.window, &operation, &request));
  if (mode == wait) {
    EXPECT_FINE(farsum_wait(&request));
  }
  int done = mode == test ? 0 : 1;
  while (done == 0) {
    ASSERT_FINE(farsum_test(&request, &done));
    sched_yield();
  }
}

void Workout::settle(const View& view, int target, int mode) {
  if (mode == flush_one) {
    EXPECT_FINE(farsum_flush(view.window, target));
  } else if (mode == flush_local) {
    EXPECT_FINE(farsum_flush_local(view.window, target));
  } else if (mode == flush_all) {
    EXPECT_FINE(farsum_flush(view.window, FARSUM_ALL_RANKS));
  }
}

void Workout::one_pair(int target, farsum_type type, farsum_op op, farsum_kind kind, int mode) {
  const std::size_t size = farsum_type_size(type);
  ElementList there = ElementList::contiguous(1, size);
  switch (pick(random_, 0, 3)) {
    case 0:
      break;
    case 1:
      there = ElementList::contiguous(pick(random_, 1, lane_elements), size);
      break;
    case 2:
      there = ElementList::indexed(random_, pick(random_, 1, lane_elements - 4), lane_elements, size);
      break;
    case 3:
      there =
          ElementList::strided(random_, static_cast<int>(pick(random_, 1, FARSUM_MAX_LEVELS)), 12, lane_elements, size);
      break;
  }
  const std::size_t elements = there.elements();
  ElementList from = any_list(random_, elements, lane_elements, size);
  ElementList into = any_list(random_, elements, lane_elements, size);
  Buffer origin(lane_elements * size);
  Buffer result(lane_elements * size);
  Buffer alpha(size);
  set_element(type, alpha.data(), random_);
  for (const std::size_t place : from.places()) set_element(type, origin.data() + place, random_);

  farsum_operation operation{};
  operation.kind = kind;
  operation.target = target;
  operation.offset = lane(type) + static_cast<std::uint64_t>(there.base());
  operation.type = type;
  operation.op = op;
  operation.count = elements;
  operation.origin = origin.data() + from.base();
  operation.result = kind == FARSUM_GET_ACCUMULATE ? result.data() + into.base() : nullptr;
  operation.alpha = op == FARSUM_SCALED_SUM ? alpha.data() : nullptr;
  operation.origin_layout = from.layout();
  operation.target_layout = there.layout();
  farsum_layout plain{};
  plain.bytes = elements * size;
  operation.result_layout = into.layout() != nullptr ? into.layout() : &plain;
  if (op == FARSUM_NO_OP && pick(random_, 0, 1) == 0) {
    operation.origin = nullptr;
    operation.origin_layout = nullptr;
  }
  const View& view = any_view();
  issue(view, operation, mode);
  settle(view, target, mode);
  for (std::size_t i = 0; i < elements; ++i) {
    std::byte old[32];
    apply(type, op, model(target) + lane(type) + there.places()[i], origin.data() + from.places()[i], old, 1,
          alpha.data());
    if (kind != FARSUM_GET_ACCUMULATE) continue;
    std::byte* const got = result.data() + into.places()[i];
    ASSERT_TRUE(same(type, got, old)) << "element " << i << " of " << elements << " of type " << type << ", operator "
                                      << op << ", completed in way " << mode;
    std::memset(got, 0xee, size);
  }
  // Beside its elements the result is as it was.
  const Buffer untouched(lane_elements * size);
  EXPECT_EQ(std::memcmp(result.data(), Buffer(untouched).data(), result.size()), 0)
      << "type " << type << ", operator " << op;
}

void Workout::try_every_legal_pair() {
  for (int t = FARSUM_BYTE; t <= FARSUM_FLOAT16; ++t) {
    const auto type = static_cast<farsum_type>(t);
    for (int o = FARSUM_SUM; o <= FARSUM_NO_OP; ++o) {
      const auto op = static_cast<farsum_op>(o);
      if (farsum_op_legal(type, op) == 0) continue;
      const int target = static_cast<int>(pick(random_, 0, workout_ranks - 1));
      // Products and sums stay small when elements start anew.
      one_pair(target, type, FARSUM_REPLACE, FARSUM_ACCUMULATE, static_cast<int>(pick(random_, 0, mode_count - 1)));
      for (const farsum_kind kind : {FARSUM_ACCUMULATE, FARSUM_GET_ACCUMULATE}) {
        one_pair(target, type, op, kind, static_cast<int>(pick(random_, 0, mode_count - 1)));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

void Workout::bulk(int target, std::size_t offset, std::size_t count, farsum_type type, farsum_op op, farsum_kind kind,
                   int mode) {
  const std::size_t bytes = count * farsum_type_size(type);
  Buffer origin(bytes);
  Buffer result(bytes);
  Buffer old(bytes);
  std::uint64_t word = random_();
  for (std::size_t i = 0; i < bytes; ++i, word = word * 5 + 7) origin.data()[i] = static_cast<std::byte>(word >> 56);
  farsum_operation operation{};
  operation.kind = kind;
  operation.target = target;
  operation.offset = offset;
  operation.type = type;
  operation.op = op;
  operation.count = count;
  operation.origin = origin.data();
  operation.result = result.data();
  const View& view = any_view();
  issue(view, operation, mode);
  settle(view, target, mode);
  const farsum_op means = kind == FARSUM_PUT ? FARSUM_REPLACE : kind == FARSUM_GET ? FARSUM_NO_OP : op;
  if (count != 0) apply(type, means, model(target) + offset, origin.data(), old.data(), count, nullptr);
  if (kind == FARSUM_GET || kind == FARSUM_GET_ACCUMULATE) {
    ASSERT_EQ(std::memcmp(result.data(), old.data(), bytes), 0)
        << bytes << " bytes, kind " << kind << ", completed in way " << mode;
  }
}

void Workout::straddle_thresholds() {
  // Nothing, one line, the inline limit, a stripe, a pulled piece, two of them, the ring, twice the ring.
  std::vector<std::size_t> sizes = {0};
  for (const std::size_t limit : {1, 64, 8192, 16384, 32704, 65536, 131072, 262144}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size + 64 <= slice_bytes_ - bulk_begin()) sizes.push_back(size);
    }
  }
  for (const std::size_t size : sizes) {
    const int target = static_cast<int>(pick(random_, 0, workout_ranks - 1));
    const std::size_t at = bulk_begin() + pick(random_, 0, 63);
    const std::size_t aligned = bulk_begin() + 8 * pick(random_, 0, 7);
    const auto mode = [this] { return static_cast<int>(pick(random_, 0, mode_count - 1)); };
    bulk(target, at, size, FARSUM_BYTE, FARSUM_REPLACE, FARSUM_PUT, mode());
    bulk(target, at, size, FARSUM_BYTE, FARSUM_REPLACE, FARSUM_GET, mode());
    bulk(target, aligned, size / 8, FARSUM_UINT64, FARSUM_SUM, FARSUM_ACCUMULATE, mode());
    bulk(target, aligned, size / 8, FARSUM_UINT64, FARSUM_BXOR, FARSUM_GET_ACCUMULATE, mode());
    if (testing::Test::HasFatalFailure()) return;
    // A lock, a get and a put for each byte, where caller-computes locks by element.
    if (size > 8193) continue;
    bulk(target, at, size, FARSUM_UINT8, FARSUM_SUM, FARSUM_ACCUMULATE, mode());
    bulk(target, at, size, FARSUM_BYTE, FARSUM_REPLACE, FARSUM_ACCUMULATE, mode());
    bulk(target, at, size, FARSUM_UINT8, FARSUM_NO_OP, FARSUM_GET_ACCUMULATE, mode());
    if (testing::Test::HasFatalFailure()) return;
  }
}

void Workout::keep_program_order() {
  const int target = (rank_ + 1) % workout_ranks;
  const View& view = memory_.views().front();
  struct Step {
    Step(std::size_t bytes) : origin(bytes), result(bytes), old(bytes) {}
    Buffer origin, result, old;
    bool fetches = false;
  };
  std::deque<Step> steps;
  constexpr std::size_t most = 3000;  // elements; more than ride in a message
  const std::size_t begin = bulk_begin();
  const std::size_t room = std::min(most, (slice_bytes_ - begin) / 8);
  for (int i = 0; i < 80; ++i) {
    const std::size_t count = pick(random_, 0, 9) == 0   ? pick(random_, 1, room)
                              : pick(random_, 0, 1) == 0 ? 1
                                                         : pick(random_, 2, 9);
    const std::size_t first = count > 16 ? 0 : pick(random_, 0, 3);
    steps.emplace_back(count * 8);
    Step& step = steps.back();
    step.fetches = pick(random_, 0, 3) == 0;
    for (std::size_t k = 0; k < count; ++k) store(step.origin.data() + 8 * k, static_cast<std::int64_t>(random_()));
    const farsum_op op = pick(random_, 0, 2) == 0   ? FARSUM_REPLACE
                         : pick(random_, 0, 1) == 0 ? FARSUM_SUM
                                                    : FARSUM_PROD;
    farsum_operation operation{};
    operation.kind = step.fetches ? FARSUM_GET_ACCUMULATE : FARSUM_ACCUMULATE;
    operation.target = target;
    operation.offset = begin + 8 * first;
    operation.type = FARSUM_INT64;
    operation.op = op;
    operation.count = std::min(count, room - first);
    operation.origin = step.origin.data();
    operation.result = step.result.data();
    // Now and then one that is waited for among those that are not.
    issue(view, operation, pick(random_, 0, 7) == 0 ? blocking : flush_one);
    apply(FARSUM_INT64, op, model(target) + begin + 8 * first, step.origin.data(), step.old.data(), operation.count,
          nullptr);
    if (operation.count != count) step.fetches = false;
  }
  ASSERT_FINE(farsum_flush(view.window, target));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].fetches) continue;
    ASSERT_EQ(std::memcmp(steps[i].result.data(), steps[i].old.data(), steps[i].result.size()), 0) << "step " << i;
  }
}

void Workout::order_puts_among_accumulates() {
  const int target = (rank_ + 2) % workout_ranks;
  const View& view = memory_.views().back();
  const std::uint64_t offset =
      view.base[static_cast<std::size_t>(target)] + static_cast<std::uint64_t>(rank_) * slice_bytes_ + bulk_begin();
  constexpr std::size_t count = 64;
  std::int64_t start[count], addend[count], seen[8][count];
  for (std::size_t i = 0; i < count; ++i) {
    start[i] = static_cast<std::int64_t>(i);
    addend[i] = 1000;
  }
  for (auto& got : seen) {
    ASSERT_FINE(farsum_put(view.window, target, offset, start, sizeof start));
    ASSERT_FINE(farsum_order(view.window));
    ASSERT_FINE(farsum_accumulate(view.window, target, offset, addend, 1, FARSUM_INT64, FARSUM_SUM));
    ASSERT_FINE(farsum_accumulate(view.window, target, offset, addend, count, FARSUM_INT64, FARSUM_SUM));
    ASSERT_FINE(farsum_order(view.window));
    ASSERT_FINE(farsum_get(view.window, target, offset, got, sizeof got));
    ASSERT_FINE(farsum_order(view.window));
  }
  ASSERT_FINE(farsum_flush(view.window, target));
  for (const auto& got : seen) {
    EXPECT_EQ(got[0], 2000);
    for (std::size_t i = 1; i < count; ++i) ASSERT_EQ(got[i], start[i] + 1000);
  }
  std::memcpy(model(target) + bulk_begin(), seen[0], sizeof seen[0]);
}

void Workout::compare_and_swap_each_type() {
  for (int t = FARSUM_BYTE; t <= FARSUM_FLOAT16; ++t) {
    const auto type = static_cast<farsum_type>(t);
    const std::size_t size = farsum_type_size(type);
    const int target = static_cast<int>(pick(random_, 0, workout_ranks - 1));
    const View& view = any_view();
    const std::size_t at = lane(type) + size * pick(random_, 0, lane_elements - 1);
    const std::uint64_t offset =
        view.base[static_cast<std::size_t>(target)] + static_cast<std::uint64_t>(rank_) * slice_bytes_ + at;
    std::byte now[32], other[32], desired[32], result[32];
    set_element(type, now, random_);
    // Written whole, padding too: the comparison is of all bytes.
    ASSERT_FINE(farsum_put(view.window, target, offset, now, size));
    ASSERT_FINE(farsum_flush(view.window, target));
    std::memcpy(other, now, size);
    other[0] ^= std::byte{1};
    set_element(type, desired, random_);
    ASSERT_FINE(farsum_compare_and_swap(view.window, target, offset, other, desired, result, type));
    ASSERT_EQ(std::memcmp(result, now, size), 0) << "type " << type;
    ASSERT_FINE(farsum_compare_and_swap(view.window, target, offset, now, desired, result, type));
    ASSERT_EQ(std::memcmp(result, now, size), 0) << "type " << type << ": the swap that had to fail swapped";
    ASSERT_FINE(farsum_fetch_op(view.window, target, offset, nullptr, result, type, FARSUM_NO_OP));
    ASSERT_TRUE(same(type, result, desired)) << "type " << type;
    std::memcpy(model(target) + at, desired, size);
  }
}

void Workout::hammer_shared_words() {
  std::vector<std::uint64_t> added(workout_ranks * shared_words, 0);
  std::vector<std::uint64_t> ones(shared_words, 1);
  const auto offset_of = [this](const View& view, int target, std::size_t word) {
    return view.base[static_cast<std::size_t>(target)] + shared_begin_ + 8 * word;
  };
  std::vector<std::uint64_t> old(shared_words);
  for (int i = 0; i < 60; ++i) {
    const View& view = any_view();
    const int target = static_cast<int>(pick(random_, 0, workout_ranks - 1));
    const std::size_t word = pick(random_, 0, 7);  // few, so that ranks meet
    std::uint64_t* const mine = &added[static_cast<std::size_t>(target) * shared_words];
    const std::uint64_t one = 1;
    switch (pick(random_, 0, 5)) {
      case 0:
        ASSERT_FINE(
            farsum_accumulate(view.window, target, offset_of(view, target, word), &one, 1, FARSUM_UINT64, FARSUM_SUM));
        ++mine[word];
        break;
      case 1: {
        const std::size_t count = pick(random_, 1, shared_words - word);
        ASSERT_FINE(farsum_accumulate(view.window, target, offset_of(view, target, word), ones.data(), count,
                                      FARSUM_UINT64, FARSUM_SUM));
        for (std::size_t k = 0; k < count; ++k) ++mine[word + k];
        break;
      }
      case 2:
        ASSERT_FINE(farsum_fetch_op(view.window, target, offset_of(view, target, word), &one, old.data(), FARSUM_UINT64,
                                    FARSUM_SUM));
        ++mine[word];
        break;
      case 3: {
        const std::size_t count = pick(random_, 2, 64);
        ASSERT_FINE(farsum_get_accumulate(view.window, target, offset_of(view, target, word), ones.data(), old.data(),
                                          count, FARSUM_UINT64, FARSUM_SUM));
        // The next one overwrites the result.
        ASSERT_FINE(farsum_flush_local(view.window, target));
        for (std::size_t k = 0; k < count; ++k) ++mine[word + k];
        break;
      }
      case 4: {
        std::uint64_t seen = 0, found = 0;
        ASSERT_FINE(farsum_fetch_op(view.window, target, offset_of(view, target, word), nullptr, &found, FARSUM_UINT64,
                                    FARSUM_NO_OP));
        do {
          seen = found;
          const std::uint64_t next = seen + 1;
          ASSERT_FINE(farsum_compare_and_swap(view.window, target, offset_of(view, target, word), &seen, &next, &found,
                                              FARSUM_UINT64));
        } while (found != seen);
        ++mine[word];
        break;
      }
      case 5: {
        ElementList list = ElementList::strided(random_, 3, 32, shared_words, 8);
        farsum_operation operation{};
        operation.struct_bytes = sizeof operation;
        operation.kind = FARSUM_ACCUMULATE;
        operation.completion = FARSUM_BLOCKING;
        operation.target = target;
        operation.offset = offset_of(view, target, 0) + static_cast<std::uint64_t>(list.base());
        operation.type = FARSUM_UINT64;
        operation.op = FARSUM_SUM;
        operation.origin = ones.data();
        operation.target_layout = list.layout();
        ASSERT_FINE(farsum_operate(view.window, &operation, nullptr));
        for (const std::size_t place : list.places()) ++mine[place / 8];
        break;
      }
    }
  }
  for (const View& view : memory_.views()) ASSERT_FINE(farsum_flush(view.window, FARSUM_ALL_RANKS));
  std::vector<std::uint64_t> of_all(added.size() * workout_ranks);
  ASSERT_FINE(farsum_allgather(farsum_world(), added.data(), of_all.data(), added.size() * 8));
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory_.mine() + shared_begin_);
  for (std::size_t word = 0; word < shared_words; ++word) {
    std::uint64_t total = 0;
    for (int origin = 0; origin < workout_ranks; ++origin) {
      total += of_all[static_cast<std::size_t>(origin) * added.size() + static_cast<std::size_t>(rank_) * shared_words +
                      word];
    }
    ASSERT_EQ(words[word], total) << "word " << word;
  }
}

void Workout::compare_memory() {
  for (const View& view : memory_.views()) ASSERT_FINE(farsum_unlock_all(view.window));
  ASSERT_FINE(farsum_barrier(farsum_world()));
  for (int origin = 0; origin < workout_ranks; ++origin) {
    const std::byte* const held = memory_.mine() + static_cast<std::size_t>(origin) * slice_bytes_;
    const std::byte* const wanted = expected_.slices[rank_][origin];
    for (int t = FARSUM_BYTE; t <= FARSUM_FLOAT16; ++t) {
      const auto type = static_cast<farsum_type>(t);
      for (std::size_t i = 0; i < lane_elements; ++i) {
        const std::size_t at = lane(type) + i * farsum_type_size(type);
        ASSERT_TRUE(same(type, held + at, wanted + at))
            << "element " << i << " of type " << type << " from rank " << origin;
      }
    }
    ASSERT_EQ(std::memcmp(held + bulk_begin(), wanted + bulk_begin(), slice_bytes_ - bulk_begin()), 0)
        << "bytes from rank " << origin;
  }
  ASSERT_FINE(farsum_barrier(farsum_world()));
}

}  // namespace farsum::test
