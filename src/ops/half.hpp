// IEEE 754 binary16 to and from float, by hand: the compiler's _Float16 would call functions that only the newest
// libgcc has, and not every compiler knows it. Not to be included where code is compiled for an instruction set of its
// own.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/element_type.hpp"

namespace farsum::ops {

namespace detail {

// The two formats' exponents are counted from 15 and from 127.
inline constexpr std::uint32_t half_rebias = (127u - 15u) << 23;

}  // namespace detail

// Exact.
constexpr float to_float(Float16 half) {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = half.bits & 0x7fffu;
  std::uint32_t bits = (magnitude << 13) + detail::half_rebias;
  if (magnitude >= 0x7c00) {
    bits += detail::half_rebias;  // Infinities and NaNs have the highest exponent in both.
  } else if (magnitude < 0x0400) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  }
  return std::bit_cast<float>(bits | sign);
}

// To the nearest, of two equally near ones to the even.
constexpr Float16 to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = (magnitude - detail::half_rebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | (magnitude >> 13 & 0x3ff);
  } else if (magnitude >= 0x477ff000) {
    half = 0x7c00;  // From 65520 on the nearest is infinity.
  } else if (magnitude < 0x38800000) {
    // Less than the least normal half: the sum has the unit of the subnormal ones, and rounds to it.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  }
  return {static_cast<std::uint16_t>(half | (bits >> 16 & 0x8000u))};
}

}  // namespace farsum::ops
