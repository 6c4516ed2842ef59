// madvise(2) on memory that may be promoted. The kernel keeps the contents of shared memory where a program has it
// discard private memory, and the program's own memory is private as far as the program knows.
#pragma once

#include <cstddef>

namespace farsum::os {

using Madvise = int (*)(void* address, std::size_t bytes, int advice);

// As `madvise_function` in all, errno too, but that promoted memory loses its contents by MADV_DONTNEED,
// MADV_DONTNEED_LOCKED and MADV_FREE: a window over it then reads zeros, at every rank. Takes no lock and allocates
// nothing.
int advise(void* address, std::size_t bytes, int advice, Madvise madvise_function);

}  // namespace farsum::os
