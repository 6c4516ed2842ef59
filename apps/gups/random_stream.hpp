// HPCC's generator: 64-bit words, each the one before times x, modulo x^64 + x^2 + x + 1 over GF(2).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace gups {

[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t x) {
  constexpr std::uint64_t polynomial = 7;
  return (x << 1) ^ (static_cast<std::int64_t>(x) < 0 ? polynomial : 0);
}

// The n-th word of the sequence, n = 0 giving 1: HPCC_starts. Squares 63 times at most, whatever n.
[[nodiscard]] constexpr std::uint64_t random_at(std::uint64_t n) {
  constexpr std::uint64_t period = 1317624576693539401u;
  n %= period;
  if (n == 0) return 1;

  // squares[b] is what bit b of a word becomes when the word is squared.
  std::array<std::uint64_t, 64> squares{};
  std::uint64_t x = 1;
  for (std::uint64_t& square : squares) {
    square = x;
    x = next_random(next_random(x));
  }

  std::uint64_t word = 2;
  for (int bit = static_cast<int>(std::bit_width(n)) - 2; bit >= 0; --bit) {
    std::uint64_t squared = 0;
    for (unsigned b = 0; b < 64; ++b) {
      if (((word >> b) & 1) != 0) squared ^= squares[b];
    }
    word = ((n >> bit) & 1) != 0 ? next_random(squared) : squared;
  }
  return word;
}

}  // namespace gups
