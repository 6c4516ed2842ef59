/* OPTIONS: --say "made no window. Its ranks are more than the processors here"
 * NOT FOR: impi openmpi openmpi5
 * A program without a window is told at its end what it gained, where its ranks share a processor. Those libraries, or
 * their launchers, bind each rank to a processor of its own.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

/* The same one in each rank, for all may use the same processors. */
static void share_the_first_processor(void) {
  cpu_set_t mine, first;
  CPU_ZERO(&first);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) abort();
  int processor = 0;
  while (!CPU_ISSET(processor, &mine)) ++processor;
  CPU_SET(processor, &first);
  if (sched_setaffinity(0, sizeof first, &first) != 0) abort();
}

int main(int argc, char** argv) {
  share_the_first_processor();
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 100; ++i) CALL(MPI_Barrier(MPI_COMM_WORLD));
  return finish();
}
