/* RANKS: 2 3
 * Windows over many communicators of the same ranks, one after the other and by threads at once. What a communicator
 * remembers of its first window goes with it, and others may have its place then. */
#include <pthread.h>

#include "check.h"

enum { rounds = 20, windows = 3, threads = 3 };

/* Each rank puts into its neighbour's part of several windows that live at once. */
static void use_windows(MPI_Comm comm) {
  const int rank = my_rank(comm), size = ranks_of(comm), right = (rank + 1) % size;
  MPI_Win win[windows];
  int* part[windows];
  for (int i = 0; i < windows; ++i) {
    if (i == 1)
      CALL(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &part[i], &win[i]));
    else
      CALL(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &part[i], &win[i]));
    const int told = 100 * i + rank;
    CALL(MPI_Win_fence(0, win[i]));
    CALL(MPI_Put(&told, 1, MPI_INT, right, 0, 1, MPI_INT, win[i]));
    CALL(MPI_Win_fence(0, win[i]));
  }
  for (int i = 0; i < windows; ++i) {
    const int expected = 100 * i + (rank + size - 1) % size;
    CHECK(*part[i] == expected, "window %d has %d, not %d", i, *part[i], expected);
    CALL(MPI_Win_free(&win[i]));
  }
}

static void* use_communicators(void* base) {
  MPI_Comm first;
  CALL(MPI_Comm_dup(*(MPI_Comm*)base, &first));
  for (int round = 0; round < rounds; ++round) {
    /* One of the same ranks that remembers nothing, beside one that does. */
    MPI_Comm anew;
    CALL(MPI_Comm_dup(first, &anew));
    use_windows(anew);
    use_windows(first);
    CALL(MPI_Comm_free(&anew));
  }
  CALL(MPI_Comm_free(&first));
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm world = MPI_COMM_WORLD;
  use_windows(world);
  use_communicators(&world);
  if (provided == MPI_THREAD_MULTIPLE) {
    MPI_Comm base[threads];
    pthread_t thread[threads];
    for (int i = 0; i < threads; ++i) CALL(MPI_Comm_dup(world, &base[i]));
    for (int i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, use_communicators, &base[i]);
    for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
    for (int i = 0; i < threads; ++i) CALL(MPI_Comm_free(&base[i]));
  }
  use_windows(world);
  return finish();
}
