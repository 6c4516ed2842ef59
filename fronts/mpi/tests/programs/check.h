/* For the test programs: a check that names what failed, and an end that all ranks agree on. */
#ifndef FARSUM_MPI_TESTS_CHECK_H
#define FARSUM_MPI_TESTS_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition, ...)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
    }                                                                 \
  } while (0)

#define CALL(expression)                                           \
  do {                                                             \
    const int call_result = (expression);                          \
    CHECK(call_result == MPI_SUCCESS, "returned %d", call_result); \
  } while (0)

static inline int my_rank(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

static inline int ranks_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

/* Sums the failures of all ranks, says the verdict once, and finalizes. */
static inline int finish(void) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank(MPI_COMM_WORLD) == 0) printf(all == 0 ? "all checks passed\n" : "%d checks failed\n", all);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

#endif
