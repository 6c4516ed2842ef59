// The system's calls that tell promoted memory from other: they need no context.
#include "farsum.h"
#include "promotion/forked_memory.hpp"
#include "promotion/promoted_advice.hpp"

extern "C" {

int farsum_fork_bare(int (*make_child)(void)) { return farsum::os::fork_bare(make_child); }

int farsum_memory_advise(void* address, size_t bytes, int advice, int (*madvise_function)(void*, size_t, int)) {
  return farsum::os::advise(address, bytes, advice, madvise_function);
}

}  // extern "C"
