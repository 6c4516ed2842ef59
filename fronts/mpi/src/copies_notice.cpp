#include "copies_notice.hpp"

#include <cstdio>
#include <utility>

#include "farsum_embed.h"

namespace farsum::mpi {

void CopiesNotice::decide(const Facts& facts) {
  if (std::exchange(is_decided_, true)) return;
  // Relaxed: threads see it as they see that the engine runs.
  is_due_.store(facts.is_first_rank && !facts.all_may_copy, std::memory_order_relaxed);
}

void CopiesNotice::say_if_refused() {
  // Relaxed: only one thread is to say it.
  if (!is_due_.load(std::memory_order_relaxed) || !is_due_.exchange(false, std::memory_order_relaxed)) return;
  const char* const why = farsum_copies_refused();
  std::fprintf(
      stderr,
      "farsum: windows over memory of the program's own are served by messages to its owner where it cannot be "
      "shared, which is slower: %s. Memory from MPI_Win_allocate or MPI_Alloc_mem loses nothing\n",
      why != nullptr ? why : "another rank may not copy from and to others of its node");
}

}  // namespace farsum::mpi
