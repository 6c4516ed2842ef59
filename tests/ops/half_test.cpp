// Half precision by hand against the compiler's.
#include "ops/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace farsum::ops {
namespace {

__extension__ typedef _Float16 Half;

std::uint16_t bits_of(Half half) { return __builtin_bit_cast(std::uint16_t, half); }

void expect_like_the_compiler(float value) {
  const std::uint16_t ours = to_half(value).bits;
  if (std::isnan(value))
    EXPECT_TRUE(std::isnan(to_float({ours})));
  else
    ASSERT_EQ(ours, bits_of(static_cast<Half>(value))) << std::hexfloat << value;
}

TEST(Half, becomes_the_same_float_as_the_compiler_makes_of_it) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = __builtin_bit_cast(Half, static_cast<std::uint16_t>(bits));
    const float ours = to_float({static_cast<std::uint16_t>(bits)}), theirs = static_cast<float>(half);
    if (std::isnan(theirs))
      EXPECT_TRUE(std::isnan(ours)) << bits;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs)) << bits;
  }
}

TEST(Half, is_rounded_to_the_nearest_and_ties_to_even) {
  // Each half, the middle between it and the next, and the floats on both sides of these.
  for (std::uint32_t bits = 0; bits < 0xffff; ++bits) {
    const float here = to_float({static_cast<std::uint16_t>(bits)});
    const float next = to_float({static_cast<std::uint16_t>(bits + 1)});
    const float middle = std::isfinite(next) ? (here + next) / 2 : std::copysign(65520.0f, here);
    for (const float value : {here, middle}) {
      expect_like_the_compiler(value);
      expect_like_the_compiler(std::nextafter(value, 1e30f));
      expect_like_the_compiler(std::nextafter(value, -1e30f));
      if (HasFatalFailure()) return;
    }
  }
  std::mt19937 random(16);
  for (int i = 0; i < 1000000 && !HasFatalFailure(); ++i)
    expect_like_the_compiler(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
}

}  // namespace
}  // namespace farsum::ops
