// A mark of one thread of a process that no other thread ever has, also one that comes after it.
#pragma once

#include <cstdint>

namespace farsum::os {

inline constexpr std::uint64_t no_mark = ~std::uint64_t{0};

// What thread_mark() last said here; in a forked child that may have been to the parent. One word: it fits where the
// loader keeps room for libraries that are opened late, and is found without a call.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::uint64_t own_thread_mark = no_mark;

// Of the calling thread. Neither 0 nor no_mark.
std::uint64_t thread_mark();

// Whether the thread of this process that had the mark has ended. False where the kernel does not say.
bool has_ended(std::uint64_t thread_mark);

}  // namespace farsum::os
