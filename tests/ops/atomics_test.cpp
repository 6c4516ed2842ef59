// Single-element atomics: the same answer as the kernels, and exact totals when several threads use them at once.
#include "ops/atomics.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ops/half.hpp"
#include "ops/kernels.hpp"

namespace farsum::ops {
namespace {

constexpr int threads = 4;

template <class Body>
void run_together(Body body) {
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread) team.emplace_back([&body, thread] { body(thread); });
  for (auto& member : team) member.join();
}

void random_operand(ElementType type, unsigned char* to, std::mt19937_64& random) {
  const double real = static_cast<double>(random() % 2001) / 8.0 - 125.0;
  const float single = static_cast<float>(real);
  const Float16 half = to_half(single);
  const std::uint64_t bits = random() % 4 == 0 ? 0 : random();
  if (type == ElementType::float64)
    std::memcpy(to, &real, sizeof real);
  else if (type == ElementType::float32)
    std::memcpy(to, &single, sizeof single);
  else if (type == ElementType::float16)
    std::memcpy(to, &half, sizeof half);
  else
    std::memcpy(to, &bits, size_of(type));
}

TEST(AtomicApply, does_to_one_element_what_the_baseline_kernel_does) {
  std::mt19937_64 random(20261);
  for (std::size_t t = 0; t < element_type_count; ++t) {
    for (std::size_t o = 0; o < operator_count; ++o) {
      const auto type = static_cast<ElementType>(t);
      const auto op = static_cast<Operator>(o);
      if (!is_lockable(type) || !legal(type, op)) continue;
      for (int round = 0; round < 200; ++round) {
        alignas(8) unsigned char target[8] = {}, silent_target[8] = {}, expected_target[8] = {};
        unsigned char operand[8] = {}, alpha[8] = {}, result[8] = {}, expected_result[8] = {};
        random_operand(type, target, random);
        random_operand(type, operand, random);
        random_operand(type, alpha, random);
        std::memcpy(silent_target, target, 8);
        std::memcpy(expected_target, target, 8);
        kernels(Isa::baseline).fetch(type, op)(expected_target, operand, expected_result, 1, alpha);
        atomic_apply(target, operand, result, type, op, alpha);
        atomic_apply(silent_target, operand, nullptr, type, op, alpha);
        ASSERT_EQ(std::memcmp(target, expected_target, 8), 0) << name_of(type) << " " << name_of(op);
        ASSERT_EQ(std::memcmp(silent_target, expected_target, 8), 0) << name_of(type) << " " << name_of(op);
        ASSERT_EQ(std::memcmp(result, expected_result, 8), 0) << name_of(type) << " " << name_of(op);
      }
    }
  }
}

// The arrays fill a word, as the compiler follows an operand of any type into the inline path for 64-bit sums.
template <class T>
void expect_exact_total(ElementType type) {
  constexpr int rounds = 20000;
  alignas(8) T target[8 / sizeof(T)] = {};
  run_together([&](int thread) {
    const T operand[8 / sizeof(T)] = {static_cast<T>(thread + 1)};
    for (int round = 0; round < rounds; ++round) atomic_apply(target, operand, nullptr, type, Operator::sum, nullptr);
  });
  EXPECT_EQ(target[0], static_cast<T>(rounds * (1 + 2 + 3 + 4))) << name_of(type);
}

TEST(AtomicApply, loses_no_sum_of_several_threads) {
  expect_exact_total<std::uint8_t>(ElementType::uint8);
  expect_exact_total<std::int16_t>(ElementType::int16);
  expect_exact_total<std::int32_t>(ElementType::int32);
  expect_exact_total<std::int64_t>(ElementType::int64);
  expect_exact_total<std::uint64_t>(ElementType::uint64);
  expect_exact_total<float>(ElementType::float32);
  expect_exact_total<double>(ElementType::float64);
}

TEST(AtomicApply, loses_no_sum_of_halves) {
  constexpr int rounds = 200;  // The total is the highest up to which halves count in ones.
  alignas(8) Float16 target[4] = {};
  run_together([&](int thread) {
    const Float16 operand = to_half(static_cast<float>(thread + 1));
    for (int round = 0; round < rounds; ++round)
      atomic_apply(target, &operand, nullptr, ElementType::float16, Operator::sum, nullptr);
  });
  EXPECT_EQ(to_float(target[0]), 10.0f * rounds);
}

TEST(AtomicApply, gives_each_fetching_thread_values_of_its_own) {
  constexpr std::size_t rounds = 20000;
  std::int64_t counter = 0;
  std::vector<int> times_given(threads * rounds);
  std::vector<std::vector<std::int64_t>> given(threads);
  run_together([&](int thread) {
    const std::int64_t one = 1;
    for (std::size_t round = 0; round < rounds; ++round) {
      std::int64_t old = -1;
      atomic_apply(&counter, &one, &old, ElementType::int64, Operator::sum, nullptr);
      given[static_cast<std::size_t>(thread)].push_back(old);
    }
  });
  for (const auto& values : given) {
    for (const std::int64_t value : values) ++times_given[static_cast<std::size_t>(value)];
  }
  EXPECT_EQ(times_given, std::vector<int>(threads * rounds, 1));
}

TEST(AtomicApply, mixes_operators_on_one_word_without_losing_any) {
  std::uint64_t word = 0;
  run_together([&](int thread) {
    const std::uint64_t bit = std::uint64_t{1} << (48 + thread);
    const std::uint64_t one = 1;
    for (int round = 0; round < 9999; ++round) {
      atomic_apply(&word, &bit, nullptr, ElementType::uint64, Operator::bxor, nullptr);
      atomic_apply(&word, &one, nullptr, ElementType::uint64, Operator::sum, nullptr);
    }
  });
  EXPECT_EQ(word, (std::uint64_t{0xf} << 48) + 4 * 9999);
}

TEST(AtomicCompareAndSwap, lets_one_thread_win_each_round) {
  std::int32_t ticket = 0;
  std::vector<int> wins(threads);
  run_together([&](int thread) {
    for (std::int32_t round = 0; round < 20000;) {
      const std::int32_t next = round + 1;
      std::int32_t old = -1;
      atomic_compare_and_swap(&ticket, &round, &next, &old, ElementType::int32);
      if (old == round) ++wins[static_cast<std::size_t>(thread)];
      round = old == round ? next : old;
    }
  });
  EXPECT_EQ(wins[0] + wins[1] + wins[2] + wins[3], 20000);
}

TEST(AtomicCompareAndSwap, tells_zeros_of_different_sign_apart) {
  double target = 0.0, result = 1.0;
  const double expected = -0.0, desired = 5.0;
  atomic_compare_and_swap(&target, &expected, &desired, &result, ElementType::float64);
  EXPECT_EQ(target, 0.0);
  EXPECT_EQ(result, 0.0);
}

TEST(PlainCompareAndSwap, swaps_only_on_equal_bits_for_every_type_at_any_alignment) {
  for (std::size_t t = 0; t < element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    const std::size_t bytes = size_of(type);
    std::vector<unsigned char> target(bytes + 2, 0x11), expected(bytes, 0x11), desired(bytes, 0x22), result(bytes);
    plain_compare_and_swap(target.data() + 1, expected.data(), desired.data(), result.data(), type);
    EXPECT_EQ(result, expected) << name_of(type);
    EXPECT_TRUE(std::equal(desired.begin(), desired.end(), target.begin() + 1)) << name_of(type);
    EXPECT_TRUE(target.front() == 0x11 && target.back() == 0x11) << name_of(type);

    expected.assign(bytes, 0x22);
    expected.back() = 0x23;
    plain_compare_and_swap(target.data() + 1, expected.data(), result.data(), nullptr, type);
    EXPECT_TRUE(std::equal(desired.begin(), desired.end(), target.begin() + 1)) << name_of(type);
  }
}

TEST(AtomicApplyDeathTest, stops_on_an_operator_that_is_not_legal) {
  double target = 0.0;
  const double operand = 1.0;
  EXPECT_DEATH(atomic_apply(&target, &operand, nullptr, ElementType::float64, Operator::band, nullptr),
               "internal error");
  EXPECT_DEATH(atomic_apply(&target, &operand, nullptr, ElementType::long_double, Operator::sum, nullptr),
               "internal error");
}

}  // namespace
}  // namespace farsum::ops
