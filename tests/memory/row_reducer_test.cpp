// Rows under stripes against one element after the other, and that no stripe is left taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "memory/apply.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t region_bytes = 8 * stripe_bytes;
constexpr std::uint32_t stripe_count = 4;

struct Memory {
  Memory() : target(region_bytes), locks(stripe_count) {}

  AtomicDomain domain(std::uint64_t key_base) { return {locks.data(), key_base, stripe_count - 1, false}; }
  void make_all_lock_free() {
    for (StripeLock& lock : locks) {
      if (lock.try_acquire(9)) lock.release_lock_free();
    }
  }
  bool all_free() const {
    for (const StripeLock& lock : locks) {
      if (lock.holder() != 0) return false;
    }
    return true;
  }

  std::vector<std::byte> target;
  std::vector<StripeLock> locks;
};

Reduction reduction_of(ops::ElementType type, ops::Operator op, std::uint64_t bytes) {
  return make_reduction(ops::kernels_for_this_machine(), type, op, nullptr, bytes);
}

// The same by the plainest means: each element under its own lock.
void reduce_elements(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory, const Rows& rows,
                     const Reduction& reduction) {
  for (std::uint64_t row = 0; row < rows.rows; ++row) {
    const auto step = static_cast<std::int64_t>(row);
    for (std::uint64_t at = 0; at < rows.row_bytes; at += reduction.element_bytes()) {
      std::uint64_t progress = 0;
      const std::uint64_t offset = rows.offset + static_cast<std::uint64_t>(step * rows.stride) + at;
      ASSERT_EQ(apply_reduction(domain, agent, memory, offset,
                                rows.operand == nullptr ? nullptr : rows.operand + step * rows.operand_stride + at,
                                rows.result == nullptr ? nullptr : rows.result + step * rows.result_stride + at,
                                reduction.element_bytes(), reduction, progress),
                Applied::done);
    }
  }
}

struct Shape {
  std::uint64_t row_bytes;
  std::uint64_t rows;
  std::int64_t stride;
  std::uint64_t offset;
};

// Any row length, stride and place whose rows lie in the region.
Shape random_shape(std::mt19937& random) {
  const auto below = [&random](std::uint64_t most) { return random() % most; };
  Shape shape{};
  const std::uint64_t lengths[] = {8, 16, 24, 64, 128, 200, 512, 1000, 2040, 2048, 4096, 20000};
  shape.row_bytes = lengths[below(std::size(lengths))];
  const std::uint64_t room = (region_bytes - shape.row_bytes) / 8;
  shape.rows = 1 + below(80);
  const std::uint64_t widest = room / shape.rows;
  const auto distance =
      static_cast<std::int64_t>(8 * below(below(2) == 0 ? widest : std::min<std::uint64_t>(widest, 300)));
  const std::uint64_t reach = (shape.rows - 1) * static_cast<std::uint64_t>(distance);
  const std::uint64_t start = 8 * below((region_bytes - shape.row_bytes - reach) / 8);
  const bool descends = below(3) == 0;
  shape.stride = descends ? -distance : distance;
  shape.offset = descends ? start + reach : start;
  return shape;
}

void fill(std::vector<std::byte>& bytes, std::mt19937& random) {
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const double value = static_cast<double>(random() % 1000);
    std::memcpy(bytes.data() + i, &value, 8);
  }
}

struct Way {
  ops::Operator op;
  bool reads;
  bool fetches;
};

TEST(RowReducer, does_what_one_element_after_the_other_does) {
  constexpr Way ways[] = {{ops::Operator::sum, true, false},
                          {ops::Operator::replace, true, false},
                          {ops::Operator::sum, true, true},
                          {ops::Operator::replace, true, true},
                          {ops::Operator::no_op, false, true}};
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const Way way = ways[seed % std::size(ways)];
    const Shape shape = random_shape(random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape.rows << " rows of " << shape.row_bytes
                                    << " bytes, stride " << shape.stride << ", offset " << shape.offset);
    // Two elements may straddle a stripe's end where the key is no multiple of eight.
    const std::uint64_t key_base = random() % 2 == 0 ? 0 : 4 + random() % 5000;
    Memory memory, plain;
    fill(memory.target, random);
    plain.target = memory.target;
    const std::uint64_t origin_row = shape.row_bytes + 8 * (random() % 20);
    std::vector<std::byte> operand(origin_row * shape.rows), result(origin_row * shape.rows);
    fill(operand, random);
    std::vector<std::byte> plain_result = result;
    Rows rows{.offset = shape.offset,
              .stride = shape.stride,
              .operand = way.reads ? operand.data() : nullptr,
              .operand_stride = static_cast<std::int64_t>(origin_row),
              .result = way.fetches ? result.data() : nullptr,
              .result_stride = static_cast<std::int64_t>(origin_row),
              .row_bytes = shape.row_bytes,
              .rows = shape.rows};
    LockFreePermit permit{};
    const LockFreePermits permits{{&permit}};
    const LockAgent agent{.id = 1, .permits = &permits};
    if (random() % 3 == 0) memory.make_all_lock_free();
    const Reduction reduction =
        reduction_of(ops::ElementType::float64, way.op, random() % 2 == 0 ? 0 : shape.row_bytes * shape.rows);
    {
      const AtomicDomain domain = memory.domain(key_base);
      RowReducer reducer(domain, agent, memory.target.data(), reduction);
      // In two calls, so that a stripe is carried over.
      Rows first = rows;
      first.rows = rows.rows / 2;
      ASSERT_EQ(reducer.apply(first), Applied::done);
      Rows second = rows;
      const auto step = static_cast<std::int64_t>(first.rows);
      second.rows -= first.rows;
      second.offset += static_cast<std::uint64_t>(step * rows.stride);
      if (way.reads) second.operand += step * rows.operand_stride;
      if (way.fetches) second.result += step * rows.result_stride;
      ASSERT_EQ(reducer.apply(second), Applied::done);
    }
    if (way.fetches) rows.result = plain_result.data();
    reduce_elements(plain.domain(key_base), agent, plain.target.data(), rows, reduction);
    ASSERT_EQ(memory.target, plain.target);
    ASSERT_EQ(result, plain_result);
    ASSERT_TRUE(memory.all_free());
  }
}

// Pieces of any lengths at any places, some twice, some empty.
std::vector<ops::Piece> random_pieces(std::mt19937& random) {
  std::vector<ops::Piece> pieces(1 + random() % 300);
  const std::uint64_t longest = random() % 4 == 0 ? 3000 : 1 + random() % 2;
  for (ops::Piece& piece : pieces) {
    piece.bytes = 8 * (random() % (longest + 1));
    piece.offset = static_cast<std::int64_t>(8 * (random() % ((region_bytes - piece.bytes) / 8)));
  }
  if (random() % 2 == 0) std::ranges::sort(pieces, {}, &ops::Piece::offset);
  if (random() % 2 == 0) pieces.push_back(pieces[random() % pieces.size()]);
  return pieces;
}

std::uint64_t bytes_of(const std::vector<ops::Piece>& pieces) {
  std::uint64_t bytes = 0;
  for (const ops::Piece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

TEST(RowReducer, does_to_a_list_what_one_element_after_the_other_does) {
  constexpr Way ways[] = {{ops::Operator::sum, true, false},
                          {ops::Operator::replace, true, false},
                          {ops::Operator::sum, true, true},
                          {ops::Operator::no_op, false, true}};
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Way way = ways[seed % std::size(ways)];
    const std::vector<ops::Piece> pieces = random_pieces(random);
    const std::uint64_t key_base = random() % 2 == 0 ? 0 : 4 + random() % 5000;
    Memory memory, plain;
    fill(memory.target, random);
    plain.target = memory.target;
    std::vector<std::byte> operand(bytes_of(pieces)), result(operand.size()), plain_result(operand.size());
    fill(operand, random);
    LockFreePermit permit{};
    const LockFreePermits permits{{&permit}};
    const LockAgent agent{.id = 1, .permits = &permits};
    if (random() % 3 == 0) memory.make_all_lock_free();
    const Reduction reduction = reduction_of(ops::ElementType::float64, way.op, operand.size());
    {
      const AtomicDomain domain = memory.domain(key_base);
      RowReducer reducer(domain, agent, memory.target.data(), reduction);
      ASSERT_EQ(reducer.apply(PieceList{.pieces = pieces,
                                        .operand = way.reads ? operand.data() : nullptr,
                                        .result = way.fetches ? result.data() : nullptr}),
                Applied::done);
    }
    std::uint64_t packed = 0;
    for (const ops::Piece& piece : pieces) {
      reduce_elements(plain.domain(key_base), agent, plain.target.data(),
                      {.offset = static_cast<std::uint64_t>(piece.offset),
                       .operand = way.reads ? operand.data() + packed : nullptr,
                       .result = way.fetches ? plain_result.data() + packed : nullptr,
                       .row_bytes = piece.bytes,
                       .rows = 1},
                      reduction);
      packed += piece.bytes;
    }
    ASSERT_EQ(memory.target, plain.target);
    ASSERT_EQ(result, plain_result);
    ASSERT_TRUE(memory.all_free());
  }
}

TEST(RowReducer, revokes_the_lock_free_stripes_of_a_list_together) {
  Memory memory;
  memory.make_all_lock_free();
  LockFreePermit permit{};
  const LockFreePermits permits{{&permit}};
  const LockAgent agent{.id = 1, .may_wait = false, .permits = &permits};
  const Reduction reduction = reduction_of(ops::ElementType::uint64, ops::Operator::sum, 0);
  const std::vector<std::uint64_t> ones(3, 1);
  constexpr auto stripe = static_cast<std::int64_t>(stripe_bytes);
  const std::vector<std::int64_t> places{2 * stripe, 8, stripe};
  const AtomicDomain domain = memory.domain(0);
  {
    RowReducer reducer(domain, agent, memory.target.data(), reduction);
    const ElementList list{
        .offsets = places, .element_bytes = 8, .operand = reinterpret_cast<const std::byte*>(ones.data())};
    // The first stripe's update is done and the others' not yet, when somebody holds the second.
    ASSERT_TRUE(memory.locks[0].try_revoke(7));
    EXPECT_EQ(reducer.apply(list), Applied::busy);
    EXPECT_EQ(reducer.refused_at(), 8U);
  }
  EXPECT_FALSE(memory.locks[1].is_lock_free());
  EXPECT_FALSE(memory.locks[2].is_lock_free());
  EXPECT_TRUE(memory.locks[3].is_lock_free());  // of no concern to it
  memory.locks[0].release();
  EXPECT_TRUE(memory.all_free());
}

TEST(RowReducer, says_where_a_stripe_could_not_be_had_and_keeps_none) {
  Memory memory;
  ASSERT_TRUE(memory.locks[1].try_acquire(7));
  const AtomicDomain domain = memory.domain(0);
  const LockAgent agent{.id = 1, .may_wait = false};
  const Reduction reduction = reduction_of(ops::ElementType::float64, ops::Operator::sum, 0);
  std::vector<std::byte> operand(4096);
  {
    RowReducer reducer(domain, agent, memory.target.data(), reduction);
    const Rows rows{.offset = stripe_bytes - 1024,
                    .stride = 512,
                    .operand = operand.data(),
                    .operand_stride = 512,
                    .row_bytes = 512,
                    .rows = 8};
    EXPECT_EQ(reducer.apply(rows), Applied::busy);
    EXPECT_EQ(reducer.refused_at(), stripe_bytes);
  }
  memory.locks[1].release();
  EXPECT_TRUE(memory.all_free());
}

TEST(ApplyReduction, revokes_the_lock_free_stripes_ahead_of_it_together) {
  Memory memory;
  memory.make_all_lock_free();
  ASSERT_TRUE(memory.locks[1].try_revoke(7));
  LockFreePermit permit{};
  const LockFreePermits permits{{&permit}};
  const LockAgent agent{.id = 1, .may_wait = false, .permits = &permits};
  const Reduction reduction = reduction_of(ops::ElementType::float64, ops::Operator::sum, 0);
  const std::vector<std::byte> operand(3 * stripe_bytes);
  std::uint64_t progress = 0;
  const auto apply = [&] {
    return apply_reduction(memory.domain(0), agent, memory.target.data(), 0, operand.data(), nullptr, operand.size(),
                           reduction, progress);
  };
  EXPECT_EQ(apply(), Applied::busy);
  EXPECT_EQ(progress, stripe_bytes);
  EXPECT_FALSE(memory.locks[2].is_lock_free());
  EXPECT_TRUE(memory.locks[3].is_lock_free());  // of no concern to it
  memory.locks[1].release();
  EXPECT_EQ(apply(), Applied::done);
  EXPECT_TRUE(memory.all_free());
}

TEST(RowReducer, shares_a_stripe_with_another_taker) {
  // Rows without end in one stripe: another taker gets in between.
  Memory memory;
  const AtomicDomain domain = memory.domain(0);
  std::atomic<std::uint64_t> contention{0};
  const LockAgent agent{.id = 1, .contention = &contention};
  const Reduction reduction = reduction_of(ops::ElementType::uint64, ops::Operator::sum, 0);
  const std::uint64_t one = 1;
  const Rows rows{.offset = 64,
                  .stride = 0,
                  .operand = reinterpret_cast<const std::byte*>(&one),
                  .operand_stride = 0,
                  .row_bytes = 8,
                  .rows = 1'000'000};
  std::atomic<bool> over{false};
  std::atomic<int> got{0};
  std::thread other([&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (!memory.locks[0].try_acquire(2)) continue;
      got.fetch_add(1, std::memory_order_relaxed);
      memory.locks[0].release();
    }
  });
  while (got.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  {
    RowReducer reducer(domain, agent, memory.target.data(), reduction);
    EXPECT_EQ(reducer.apply(rows), Applied::done);
  }
  over.store(true, std::memory_order_relaxed);
  other.join();
  std::uint64_t sum = 0;
  std::memcpy(&sum, memory.target.data() + 64, sizeof sum);
  EXPECT_EQ(sum, rows.rows);
  EXPECT_TRUE(memory.all_free());
}

}  // namespace
}  // namespace farsum
