/* Others who want this processor: each time that the process offers it they take it for milliseconds, as a compiler
 * beside it would. */
#ifndef FARSUM_MPI_TESTS_COUNTED_YIELDS_H
#define FARSUM_MPI_TESTS_COUNTED_YIELDS_H

#include <time.h>

#include "check.h"

enum { slice_ns = 3000000 };

/* Takes the place of libc's, for the libraries too. */
static int is_counted, yields;
__attribute__((visibility("default"))) int sched_yield(void) {
  if (!is_counted) return 0;
  ++yields;
  const struct timespec slice = {0, slice_ns};
  nanosleep(&slice, NULL);
  return 0;
}

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
