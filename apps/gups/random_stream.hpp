// HPCC's generator: 64-bit words, each the one before times x, modulo x^64 + x^2 + x + 1 over GF(2).
#pragma once

#include <cstdint>

namespace gups {

[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t x) {
  constexpr std::uint64_t polynomial = 7;
  return (x << 1) ^ (static_cast<std::int64_t>(x) < 0 ? polynomial : 0);
}

// The n-th word of the sequence, n = 0 giving 1: HPCC_starts. Takes 64 squarings at most, whatever n.
[[nodiscard]] std::uint64_t random_at(std::uint64_t n);

}  // namespace gups
