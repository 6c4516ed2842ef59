// What answers reads from copies, and what does not, by itself: the test is the owner, the network and the clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "read_ahead_parts.hpp"
#include "sim/seeds.hpp"

namespace farsum {
namespace {

// The last block of the part is clipped.
constexpr std::uint64_t part_bytes = 3 * block_bytes + 1000;
constexpr std::uint32_t target = 1;

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() : memory_(part_bytes) {
    clock_ns = 5;
    std::mt19937 random(1);
    for (std::byte& byte : memory_) byte = static_cast<std::byte>(random());
  }
  // What is under way ends before the copies do.
  ~ReadAheadTest() override { complete(); }

  ReadAhead::Options options() { return {age_ns, &hearing_, &copies_, read_clock}; }

  static Operation read_of(OperationKind kind, std::uint64_t offset, const ops::LayoutView& layout, Bytes& result) {
    Operation operation;
    operation.kind = kind;
    operation.op = ops::Operator::no_op;
    operation.offset = offset;
    operation.bytes = result.size();
    operation.target_layout = layout;
    operation.operand_layout = operation.result_layout = ops::LayoutView::contiguous(result.size());
    operation.result = result.data();
    return operation;
  }
  Operation get(std::uint64_t offset, std::uint64_t bytes = 8) {
    result_.assign(bytes, garbage);
    return read_of(OperationKind::get, offset, ops::LayoutView::contiguous(bytes), result_);
  }
  Operation atomic_read(std::uint64_t offset, ops::ElementType type = ops::ElementType::uint64) {
    result_.assign(ops::size_of(type), garbage);
    Operation operation =
        read_of(OperationKind::get_accumulate, offset, ops::LayoutView::contiguous(result_.size()), result_);
    operation.type = type;
    return operation;
  }

  void send(const Operation& operation) { ahead_.sent(target, operation); }
  void wait() {
    ahead_.end_round(target, [this](const Operation& block, Outstanding& fetches, RequestState& told) {
      if (!has_room_) return false;
      fetches.count.fetch_add(1, std::memory_order_relaxed);
      std::fill_n(block.result, block.bytes, garbage);
      under_way_.push_back({block, &fetches, &told});
      return true;
    });
  }
  // In a round of its own.
  void send_and_wait(const Operation& operation) {
    send(operation);
    wait();
  }
  // What was asked for is here.
  void complete(Code code = Code::ok) {
    for (const Fetch& fetch : under_way_) {
      std::memcpy(fetch.block.result, memory_.data() + fetch.block.offset, fetch.block.bytes);
      end_fetch(fetch, code);
    }
    under_way_.clear();
  }
  // Reads in two rounds, after which there is a copy.
  void warm(const Operation& operation) {
    send_and_wait(operation);
    send_and_wait(operation);
    complete();
  }
  bool answers(const Operation& operation) { return ahead_.answer(target, operation); }
  bool answers_at(std::uint64_t offset) { return answers(get(offset)); }
  std::uint64_t fetched() const { return copies_.fetched.load(); }

  Bytes memory_;
  Hearing hearing_;
  ReadCopies copies_;
  std::deque<Fetch> under_way_;
  bool has_room_ = true;
  Bytes result_;
  ReadAhead ahead_{options(), {0, part_bytes}};
};

// ---- What is fetched.

TEST_F(ReadAheadTest, fetches_nothing_that_was_read_once) {
  send_and_wait(get(0));
  EXPECT_TRUE(under_way_.empty());
  EXPECT_FALSE(answers_at(0));
}

TEST_F(ReadAheadTest, fetches_nothing_that_was_read_twice_in_one_round) {
  send(get(0));
  send(get(64));
  wait();
  EXPECT_TRUE(under_way_.empty());
}

TEST_F(ReadAheadTest, fetches_nothing_before_the_end_of_a_round) {
  send_and_wait(get(0));
  send(get(0));
  send(get(64));
  EXPECT_TRUE(under_way_.empty());
  wait();
  EXPECT_EQ(under_way_.size(), 1u);
  wait();
  EXPECT_EQ(under_way_.size(), 1u);
}

TEST_F(ReadAheadTest, fetches_nothing_that_was_read_before_a_hearing_in_its_last_round) {
  send_and_wait(get(0));
  send(get(0));
  hearing_.hear();
  wait();
  EXPECT_TRUE(under_way_.empty());
}

TEST_F(ReadAheadTest, fetches_nothing_that_was_read_in_two_rounds_with_a_hearing_between_them) {
  send_and_wait(get(0));
  hearing_.hear();
  send_and_wait(get(0));
  EXPECT_TRUE(under_way_.empty());
}

TEST_F(ReadAheadTest, fetches_a_block_once_that_was_read_in_two_rounds) {
  send_and_wait(get(block_bytes + 24));
  send_and_wait(get(2 * block_bytes - 8));
  ASSERT_EQ(under_way_.size(), 1u);
  const Operation& block = under_way_[0].block;
  EXPECT_EQ(block.kind, OperationKind::get);
  EXPECT_EQ(block.offset, block_bytes);
  EXPECT_EQ(block.bytes, block_bytes);
  EXPECT_EQ(ahead_.fetches(target).count.load(), 1u);
  send_and_wait(get(block_bytes));
  EXPECT_EQ(under_way_.size(), 1u);
  EXPECT_EQ(fetched(), 1u);
}

TEST_F(ReadAheadTest, fetches_both_blocks_of_a_read_across_their_border) {
  send_and_wait(get(block_bytes - 4));
  send_and_wait(get(block_bytes - 4));
  ASSERT_EQ(under_way_.size(), 2u);
  EXPECT_EQ(under_way_[0].block.offset, 0u);
  EXPECT_EQ(under_way_[1].block.offset, block_bytes);
}

TEST_F(ReadAheadTest, fetches_no_more_than_the_part_has) {
  send_and_wait(get(part_bytes - 8));
  send_and_wait(get(part_bytes - 8));
  ASSERT_EQ(under_way_.size(), 1u);
  EXPECT_EQ(under_way_[0].block.offset, 3 * block_bytes);
  EXPECT_EQ(under_way_[0].block.bytes, 1000u);
}

TEST_F(ReadAheadTest, fetches_a_useful_block_as_soon_as_it_is_read_after_a_hearing) {
  for (const unsigned answers : {3u, 4u}) {
    SCOPED_TRACE(answers);
    hearing_.hear();
    warm(get(0));
    for (unsigned i = 0; i < answers; ++i) ASSERT_TRUE(answers_at(64 * i));
    hearing_.hear();
    send_and_wait(get(8));
    EXPECT_EQ(under_way_.size(), answers == 4 ? 1u : 0u);
    complete();
    EXPECT_EQ(answers_at(16), answers == 4);
  }
}

TEST_F(ReadAheadTest, asks_again_where_there_was_no_room) {
  has_room_ = false;
  send_and_wait(get(0));
  send_and_wait(get(0));
  EXPECT_EQ(fetched(), 0u);
  EXPECT_FALSE(answers_at(0));
  has_room_ = true;
  send_and_wait(get(0));
  EXPECT_EQ(under_way_.size(), 1u);
  complete();
  EXPECT_TRUE(answers_at(0));
}

TEST_F(ReadAheadTest, never_asks_again_for_what_the_owner_refuses) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  complete(Code::unreachable);
  EXPECT_FALSE(answers_at(0));
  for (int round = 0; round < 5; ++round) {
    send_and_wait(get(0));
    if (round == 2) hearing_.hear();
  }
  EXPECT_TRUE(under_way_.empty());
  EXPECT_FALSE(answers_at(0));
  EXPECT_EQ(fetched(), 1u);
}

// ---- What is answered.

TEST_F(ReadAheadTest, answers_what_was_fetched_and_counts_it) {
  warm(get(0));
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{9}, block_bytes - 8}) {
    ASSERT_TRUE(answers_at(offset));
    EXPECT_EQ(std::memcmp(result_.data(), memory_.data() + offset, 8), 0) << "at " << offset;
  }
  EXPECT_FALSE(answers_at(block_bytes));
  EXPECT_EQ(copies_.answered.load(), 3u);
}

TEST_F(ReadAheadTest, answers_nothing_before_the_fetch_is_done) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  EXPECT_FALSE(answers_at(0));
  EXPECT_EQ(result_, Bytes(8, garbage));
  complete();
  EXPECT_TRUE(answers_at(0));
}

TEST_F(ReadAheadTest, answers_across_a_border_where_both_blocks_are_here_and_else_writes_nothing) {
  warm(get(0));
  const Operation across = get(block_bytes - 3);
  EXPECT_FALSE(answers(across));
  EXPECT_EQ(result_, Bytes(8, garbage));
  warm(get(block_bytes));
  ASSERT_TRUE(answers_at(block_bytes - 3));
  EXPECT_EQ(std::memcmp(result_.data(), memory_.data() + block_bytes - 3, 8), 0);
}

TEST_F(ReadAheadTest, answers_at_the_end_of_a_part) {
  warm(get(part_bytes - 1, 1));
  ASSERT_TRUE(answers(get(3 * block_bytes, 1000)));
  EXPECT_EQ(std::memcmp(result_.data(), memory_.data() + 3 * block_bytes, 1000), 0);
}

void warm_everything(const std::function<void(std::uint64_t)>& warm_at) {
  for (std::uint64_t offset = 0; offset < part_bytes; offset += block_bytes) warm_at(offset);
}

TEST_F(ReadAheadTest, answers_strided_reads_in_both_directions) {
  warm_everything([this](std::uint64_t offset) { warm(get(offset)); });
  const std::uint64_t counts[] = {5, 3};
  const std::int64_t strides[] = {-40, 12'000};
  const ops::LayoutView rows = ops::LayoutView::strided(24, counts, strides);
  Bytes result(24 * 5 * 3, garbage), expected;
  const std::uint64_t offset = 4'500;
  ASSERT_TRUE(answers(read_of(OperationKind::get, offset, rows, result)));
  for (std::int64_t plane = 0; plane < 3; ++plane) {
    for (std::int64_t row = 0; row < 5; ++row) {
      const auto from = memory_.begin() + static_cast<std::int64_t>(offset) - 40 * row + 12'000 * plane;
      expected.insert(expected.end(), from, from + 24);
    }
  }
  EXPECT_EQ(result, expected);
}

// Pieces anywhere, also over each other, on both sides of a read.
TEST_F(ReadAheadTest, answers_what_memory_holds_whatever_the_layouts) {
  warm_everything([this](std::uint64_t offset) { warm(get(offset)); });
  for_each_seed(50, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<ops::Piece> pieces, results;
    Bytes expected;
    for (std::size_t i = 1 + random() % 20; i != 0; --i) {
      const std::uint64_t bytes = 1 + random() % 300;
      const std::uint64_t at = random() % (part_bytes - bytes);
      pieces.push_back({static_cast<std::int64_t>(at) - 7, bytes});
      results.push_back({static_cast<std::int64_t>(expected.size() + 3 * results.size()), bytes});
      const auto from = memory_.begin() + static_cast<std::int64_t>(at);
      expected.insert(expected.end(), from, from + static_cast<std::int64_t>(bytes));
    }
    Bytes result(expected.size() + 3 * results.size(), garbage);
    Operation operation = read_of(OperationKind::get, 7, ops::LayoutView::indexed(pieces), result);
    operation.bytes = expected.size();
    operation.result_layout = ops::LayoutView::indexed(results);
    ASSERT_TRUE(answers(operation));
    Bytes packed;
    for (const ops::Piece& piece : results) {
      const auto from = result.begin() + piece.offset;
      packed.insert(packed.end(), from, from + static_cast<std::int64_t>(piece.bytes));
      for (std::int64_t gap = 0; gap < 3; ++gap) EXPECT_EQ(from[static_cast<std::int64_t>(piece.bytes) + gap], garbage);
    }
    EXPECT_EQ(packed, expected);
  });
}

// ---- What is answered no more.

TEST_F(ReadAheadTest, answers_nothing_from_before_a_hearing) {
  warm(get(0));
  ASSERT_TRUE(answers_at(0));
  hearing_.hear();
  EXPECT_FALSE(answers_at(0));
}

TEST_F(ReadAheadTest, answers_nothing_that_was_asked_for_before_a_hearing) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  hearing_.hear();
  complete();
  EXPECT_FALSE(answers_at(0));
}

TEST_F(ReadAheadTest, answers_until_the_age_is_over) {
  warm(get(0));
  clock_ns += age_ns - 1;
  EXPECT_TRUE(answers_at(0));
  clock_ns += 1;
  EXPECT_FALSE(answers_at(0));
}

TEST_F(ReadAheadTest, counts_the_age_from_the_asking) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  clock_ns += age_ns;
  complete();
  EXPECT_FALSE(answers_at(0));
}

TEST_F(ReadAheadTest, answers_nothing_of_a_block_that_this_process_has_changed) {
  for (const std::uint64_t first : {block_bytes, 2 * block_bytes - 1}) {
    SCOPED_TRACE(first);
    hearing_.hear();
    warm_everything([this](std::uint64_t offset) { warm(get(offset)); });
    ahead_.changed(target, first, first + 1);
    EXPECT_TRUE(answers_at(block_bytes - 8));
    EXPECT_FALSE(answers_at(block_bytes));
    EXPECT_TRUE(answers_at(2 * block_bytes));
  }
}

TEST_F(ReadAheadTest, answers_what_was_not_changed) {
  warm_everything([this](std::uint64_t offset) { warm(get(offset)); });
  ahead_.changed(target, block_bytes, block_bytes);
  EXPECT_TRUE(answers_at(block_bytes));
  ahead_.changed(target, block_bytes, 3 * block_bytes);
  EXPECT_TRUE(answers_at(0));
  EXPECT_FALSE(answers_at(block_bytes));
  EXPECT_FALSE(answers_at(2 * block_bytes));
  EXPECT_TRUE(answers_at(3 * block_bytes));
  ahead_.changed(target, 0, part_bytes);
  EXPECT_FALSE(answers_at(0));
  EXPECT_FALSE(answers_at(3 * block_bytes));
}

TEST_F(ReadAheadTest, answers_nothing_that_was_asked_for_before_a_change) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  ahead_.changed(target, 100, 108);
  complete();
  EXPECT_FALSE(answers_at(0));
  send_and_wait(get(0));
  complete();
  EXPECT_TRUE(answers_at(0));
}

TEST_F(ReadAheadTest, answers_nothing_of_a_block_that_was_read_anew) {
  warm(get(0));
  warm(get(block_bytes));
  ASSERT_TRUE(answers_at(0));
  send(get(100));
  EXPECT_FALSE(answers_at(0));
  EXPECT_TRUE(answers_at(block_bytes));
}

TEST_F(ReadAheadTest, answers_nothing_older_than_a_read_of_the_same_that_followed_the_fetch) {
  send_and_wait(get(0));
  send_and_wait(get(0));
  ASSERT_EQ(under_way_.size(), 1u);
  // Sent behind the fetch, it may find what the fetch did not.
  send(get(0));
  complete();
  EXPECT_FALSE(answers_at(0));
}

// ---- Atomic reads.

TEST_F(ReadAheadTest, answers_atomic_reads_from_what_was_fetched_atomically_and_gets_from_either) {
  warm(get(0));
  EXPECT_TRUE(answers_at(0));
  EXPECT_FALSE(answers(atomic_read(0)));
  warm(atomic_read(block_bytes));
  EXPECT_TRUE(answers_at(block_bytes));
  ASSERT_TRUE(answers(atomic_read(block_bytes + 8)));
  EXPECT_EQ(std::memcmp(result_.data(), memory_.data() + block_bytes + 8, 8), 0);
}

TEST_F(ReadAheadTest, fetches_atomically_for_an_atomic_read) {
  send_and_wait(get(0));
  send_and_wait(atomic_read(0));
  ASSERT_EQ(under_way_.size(), 1u);
  EXPECT_EQ(under_way_[0].block.kind, OperationKind::get_accumulate);
  EXPECT_EQ(under_way_[0].block.op, ops::Operator::no_op);
}

TEST_F(ReadAheadTest, fetches_atomically_where_one_read_of_the_round_is_atomic) {
  for (const bool is_first : {true, false}) {
    SCOPED_TRACE(is_first);
    hearing_.hear();
    send_and_wait(get(0));
    send(is_first ? atomic_read(0) : get(0));
    send(is_first ? get(0) : atomic_read(0));
    wait();
    complete();
    EXPECT_TRUE(answers(atomic_read(8)));
  }
}

// ---- What is a read.

TEST_F(ReadAheadTest, takes_gets_and_atomic_reads_for_reads) {
  EXPECT_TRUE(ahead_.is_read(get(3)));
  EXPECT_TRUE(ahead_.is_read(atomic_read(8)));
  EXPECT_TRUE(ahead_.is_read(atomic_read(4, ops::ElementType::int32)));
}

TEST_F(ReadAheadTest, takes_nothing_for_a_read_that_changes_or_notifies) {
  for (const OperationKind kind : {OperationKind::put, OperationKind::accumulate, OperationKind::get_accumulate,
                                   OperationKind::compare_and_swap}) {
    Operation operation = atomic_read(8);
    operation.kind = kind;
    operation.op = ops::Operator::sum;
    EXPECT_FALSE(ahead_.is_read(operation)) << static_cast<int>(kind);
  }
  Operation telling = get(0);
  telling.notify = true;
  EXPECT_FALSE(ahead_.is_read(telling));
}

TEST_F(ReadAheadTest, takes_no_long_read) {
  EXPECT_TRUE(ahead_.is_read(get(0, 8'192)));
  EXPECT_FALSE(ahead_.is_read(get(0, 8'193)));
}

TEST_F(ReadAheadTest, takes_no_atomic_read_of_long_elements_or_at_odd_offsets) {
  EXPECT_FALSE(ahead_.is_read(atomic_read(0, ops::ElementType::complex_long_double)));
  EXPECT_FALSE(ahead_.is_read(atomic_read(4)));
  EXPECT_FALSE(ahead_.is_read(atomic_read(2, ops::ElementType::int32)));
}

TEST_F(ReadAheadTest, takes_no_atomic_read_with_an_element_at_an_odd_place_of_its_layout) {
  const ops::Piece pieces[] = {{0, 8}, {block_bytes - 4, 8}};
  Bytes result(16);
  Operation operation = read_of(OperationKind::get_accumulate, 0, ops::LayoutView::indexed(pieces), result);
  operation.type = ops::ElementType::uint64;
  EXPECT_FALSE(ahead_.is_read(operation));
  const std::uint64_t counts[] = {3};
  const std::int64_t strides[] = {12};
  result.resize(24);
  operation = read_of(OperationKind::get_accumulate, 0, ops::LayoutView::strided(8, counts, strides), result);
  operation.type = ops::ElementType::uint64;
  EXPECT_FALSE(ahead_.is_read(operation));
}

TEST_F(ReadAheadTest, leaves_atomic_reads_alone_where_it_is_for_gets_only) {
  ReadAhead::Options gets = options();
  gets.only_gets = true;
  const ReadAhead ahead(gets, {0, part_bytes});
  EXPECT_TRUE(ahead.is_read(get(0)));
  EXPECT_FALSE(ahead.is_read(atomic_read(0)));
}

}  // namespace
}  // namespace farsum
