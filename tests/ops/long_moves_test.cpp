#include "ops/long_moves.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

namespace farsum::ops {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::byte guard{0xa5};

// Two buffers whose places within a page are chosen, the target's with guards around what is written.
struct Pair {
  Pair(std::size_t target_place, std::size_t operand_place, std::size_t bytes, unsigned seed)
      : target(bytes + 3 * page_bytes, guard), operand(bytes + 3 * page_bytes) {
    std::mt19937 random(seed);
    for (std::byte& byte : operand) byte = static_cast<std::byte>(random());
    to = at_place(target, target_place);
    from = at_place(operand, operand_place);
  }

  static std::byte* at_place(std::vector<std::byte>& buffer, std::size_t place) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data() + page_bytes);
    return buffer.data() + page_bytes + (page_bytes - address % page_bytes) % page_bytes + place;
  }

  bool holds_just(std::size_t bytes) const {
    const auto first = static_cast<std::size_t>(to - target.data());
    for (std::size_t i = 0; i < target.size(); ++i) {
      const bool inside = i >= first && i < first + bytes;
      if (target[i] != (inside ? from[i - first] : guard)) return false;
    }
    return true;
  }

  std::vector<std::byte> target, operand;
  std::byte* to;
  std::byte* from;
};

class LongMoves : public ::testing::Test {
 protected:
  void SetUp() override {
    if (long_bulk(ElementType::byte, Operator::replace) == nullptr) {
      GTEST_SKIP() << "this processor has no quick string move";
    }
  }
};

TEST_F(LongMoves, write_the_operand_and_nothing_around_it_wherever_both_lie) {
  for (const auto type : {ElementType::byte, ElementType::int16, ElementType::float64, ElementType::complex256}) {
    const std::size_t size = size_of(type);
    for (const std::size_t bytes : {std::size_t{0}, size, std::size_t{4064}, std::size_t{4096}, std::size_t{4160},
                                    std::size_t{16384}, std::size_t{24576} + 32}) {
      for (const std::size_t target_place : {0, 1, 8, 32, 64, 100}) {
        for (const std::size_t operand_place : {0, 1, 16, 64, 4000}) {
          Pair pair(target_place, operand_place, bytes, 7);
          long_bulk(type, Operator::replace)(pair.to, pair.from, bytes / size, nullptr);
          ASSERT_TRUE(pair.holds_just(bytes)) << name_of(type) << ", " << bytes << " bytes from place " << operand_place
                                              << " to place " << target_place << " of a page";
        }
      }
    }
  }
}

// As of the kernels: a reader sees each value rise, and none that is half of another.
TEST_F(LongMoves, never_show_a_reader_an_older_or_a_torn_value) {
  constexpr std::size_t elements = 3001;
  std::vector<std::uint64_t> target(elements), operand(elements);
  std::atomic<bool> stops{false};
  std::uint64_t faults = 0;
  std::thread reader([&] {
    std::vector<std::uint64_t> seen(elements);
    // Relaxed: only says when to leave; join orders everything else.
    while (!stops.load(std::memory_order_relaxed)) {
      for (std::size_t i = 0; i < elements; ++i) {
        const std::uint64_t now = __atomic_load_n(&target[i], __ATOMIC_RELAXED);
        if (now < seen[i] || (now >> 32) != (now & 0xffffffff)) ++faults;
        seen[i] = now;
      }
    }
  });
  for (std::uint64_t round = 1; round <= 3000; ++round) {
    for (auto& value : operand) value = round << 32 | round;
    long_bulk(ElementType::uint64, Operator::replace)(target.data(), operand.data(), elements, nullptr);
  }
  stops.store(true, std::memory_order_relaxed);
  reader.join();
  EXPECT_EQ(faults, 0u);
}

TEST_F(LongMoves, fetch_the_target_and_leave_it_as_it_is) {
  constexpr std::size_t bytes = 40000;
  Pair pair(24, 8, bytes, 11);
  const std::vector<std::byte> before = pair.operand;
  long_fetch(ElementType::float64, Operator::no_op)(pair.from, nullptr, pair.to, bytes / 8, nullptr);
  EXPECT_TRUE(pair.holds_just(bytes));
  EXPECT_EQ(pair.operand, before);
}

TEST_F(LongMoves, leave_computing_operators_to_the_kernels) {
  EXPECT_EQ(long_bulk(ElementType::float64, Operator::sum), nullptr);
  EXPECT_EQ(long_fetch(ElementType::float64, Operator::sum), nullptr);
  EXPECT_EQ(long_fetch(ElementType::float64, Operator::replace), nullptr) << "a swap needs the old values too";
  EXPECT_EQ(long_bulk(ElementType::float64, Operator::no_op), nullptr);
}

}  // namespace
}  // namespace farsum::ops
