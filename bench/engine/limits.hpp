// The limits: what this machine does when nothing stands between the program and the instruction. Each is what a
// programmer would write by hand for the same work.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/daxpy.hpp"

namespace bench {

// An 8-byte store that all others see before this thread goes on. GCC makes the fence a `lock or` on the stack, which
// is faster here than mfence.
inline void store_and_fence(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// `lock xadd`.
inline std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t value) {
  return std::atomic_ref(word).fetch_add(value, std::memory_order_seq_cst);
}

// `lock xor`: the old value is not asked for.
inline void atomic_xor(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).fetch_xor(value, std::memory_order_seq_cst);
}

}  // namespace bench
