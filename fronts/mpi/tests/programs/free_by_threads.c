/* Under MPI_THREAD_MULTIPLE a free waits until all ranks have come, also where two ranks free two windows in different
 * orders and the threads that will bring them together have never made or freed a window. */
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { freed = 1, go_on = 2 };

static MPI_Win windows[2];
static int rank;

/* Each rank's first thread frees one window, its second thread the other one later. */
static void free_first(void) {
  const int done = 1;
  CALL(MPI_Win_free(&windows[rank]));
  if (rank == 0) CALL(MPI_Send(&done, 1, MPI_INT, 1, freed, MPI_COMM_WORLD));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Rank 1 works on window 0 yet: for 0.5 s rank 0 must not have got out of its free. */
static void* free_second(void* nothing) {
  int word = 0, came = 0;
  if (rank == 1) {
    const double end = now() + 0.5;
    while (!came && now() < end) CALL(MPI_Iprobe(0, freed, MPI_COMM_WORLD, &came, MPI_STATUS_IGNORE));
    CHECK(!came, "rank 0's free returned although rank 1 had not come");
    CALL(MPI_Send(&word, 1, MPI_INT, 0, go_on, MPI_COMM_WORLD));
  } else {
    CALL(MPI_Recv(&word, 1, MPI_INT, 1, go_on, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  CALL(MPI_Win_free(&windows[1 - rank]));
  return nothing;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  rank = my_rank(MPI_COMM_WORLD);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("this library provides no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  void* memory = NULL;
  MPI_Comm comms[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CALL(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, comms[i], &memory, &windows[i]));
  }
  pthread_t other;
  pthread_create(&other, NULL, free_second, NULL);
  free_first();
  pthread_join(other, NULL);
  int word = 0;
  if (rank == 1) CALL(MPI_Recv(&word, 1, MPI_INT, 0, freed, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  return finish();
}
