/* Several threads of each rank on one window, and each on windows of its own, under MPI_THREAD_MULTIPLE.
 * Takes seconds: threads are more than processors
 */
#include <pthread.h>

#include "check.h"

enum { threads = 4, updates = 2000 };

static MPI_Win shared_window;
static MPI_Comm own_comm[threads];

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  const long one = 1;
  long old = 0;
  for (int i = 0; i < updates; ++i) {
    CALL(MPI_Fetch_and_op(&one, &old, MPI_LONG, i % size, 0, MPI_SUM, shared_window));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, (i + 1) % size, 1 + me, 1, MPI_LONG, MPI_SUM, shared_window));
    CALL(MPI_Win_flush(i % size, shared_window));
  }
  for (int round = 0; round < 50; ++round) {
    long* memory = NULL;
    MPI_Win win;
    CALL(MPI_Win_allocate(64, 8, MPI_INFO_NULL, own_comm[me], &memory, &win));
    memory[0] = -1;
    CALL(MPI_Win_fence(0, win));
    const long value = 1000L * me + rank;
    CALL(MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win));
    CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[0] == 1000L * me + (rank + size - 1) % size, "thread %d got %ld", me, memory[0]);
    CALL(MPI_Win_free(&win));
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (my_rank(MPI_COMM_WORLD) == 0) puts("this library provides no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  long* memory = NULL;
  const int size = ranks_of(MPI_COMM_WORLD);
  CALL(MPI_Win_allocate((1 + threads) * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &shared_window));
  memset(memory, 0, (1 + threads) * 8);
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own_comm[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock_all(0, shared_window));
  pthread_t thread[threads];
  for (size_t i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  CALL(MPI_Win_unlock_all(shared_window));
  MPI_Barrier(MPI_COMM_WORLD);
  long sums[2] = {memory[0], 0}, totals[2];
  for (int i = 0; i < threads; ++i) sums[1] += memory[1 + i];
  MPI_Allreduce(sums, totals, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long expected = (long)threads * updates * size;
  CHECK(totals[0] == expected && totals[1] == expected, "%ld and %ld, not %ld", totals[0], totals[1], expected);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own_comm[i]);
  CALL(MPI_Win_free(&shared_window));
  return finish();
}
