// What the tests of reads from copies have in common: the clock, and a fetch that is under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "variants/read_copies/read_ahead.hpp"

namespace farsum {

inline constexpr std::uint64_t block_bytes = ReadAhead::block_bytes;
inline constexpr std::uint64_t age_ns = 1000;
inline constexpr std::byte garbage{0xEE};

using Bytes = std::vector<std::byte>;

inline std::uint64_t clock_ns = 0;
inline std::uint64_t read_clock() { return clock_ns; }

struct Fetch {
  Operation block;
  Outstanding* fetches = nullptr;
  RequestState* told = nullptr;
};

inline void end_fetch(const Fetch& fetch, Code code) {
  fetch.told->code.store(code, std::memory_order_relaxed);
  fetch.told->done.store(true, std::memory_order_release);
  fetch.fetches->count.fetch_sub(1, std::memory_order_release);
}

}  // namespace farsum
