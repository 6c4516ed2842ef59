// For tests of reads that are answered from copies: windows that allow it, of parts of four blocks.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "rank_processes.hpp"

namespace farsum::test {

inline constexpr std::uint32_t a_day_ms = 86'400'000;
inline constexpr std::size_t words_of_block = 16'384 / 8;
inline constexpr std::size_t words_of_part = 4 * words_of_block;
inline constexpr std::size_t flag = 3 * words_of_block;  // a word that nobody takes copies of

inline farsum_window_options aged(std::uint32_t read_age_ms = a_day_ms) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.read_age_ms = read_age_ms;
  return options;
}

inline farsum_statistics statistics() {
  farsum_statistics now{};
  now.struct_bytes = sizeof now;
  EXPECT_FINE(farsum_statistics_read(&now));
  return now;
}

inline std::uint64_t at(std::size_t word) { return 8 * word; }

inline std::uint64_t read(farsum_window window, int target, std::size_t word) {
  std::uint64_t value = 0;
  EXPECT_FINE(farsum_get(window, target, at(word), &value, sizeof value));
  EXPECT_FINE(farsum_flush(window, target));
  return value;
}

}  // namespace farsum::test
