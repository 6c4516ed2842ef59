/* OPTIONS: --set FARSUM_MPI_STATS=1 --say direct
 * RANKS: 2 4
 * Takes seconds: memory moves while threads use it
 * Windows over heap memory that the program has filled, while a thread of its own uses that memory all along: nothing
 * is lost on the way into shared memory, while ranks reach it, and on the way back. run_case looks for the path.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { words = 1 << 20, rounds = 6, mine_at = words / 2, stride = 512 };

static long* memory;
static atomic_int leave;
static long sweeps;

/* Plain stores, one in each page of the upper half. */
static void* use_memory(void* unused) {
  (void)unused;
  volatile long* const own = memory + mine_at;
  while (!atomic_load(&leave)) {
    for (int i = 0; i < words / 2; i += stride) own[i] = own[i] + 1;
    ++sweeps;
  }
  return NULL;
}

static void check_own_words(int rank) {
  for (int i = 0; i < words / 2; i += stride) {
    if (memory[mine_at + i] == sweeps) continue;
    CHECK(0, "rank %d: word %d is %ld after %ld sweeps", rank, i, memory[mine_at + i], sweeps);
    return;
  }
}

static void reach_the_next(MPI_Win win, int rank, int size, int round) {
  const int next = (rank + 1) % size, one_before = (rank + size - 1) % size;
  const long value = 1000L * round + rank, one = 1;
  long seen[4] = {0}, old = 0;
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  CALL(MPI_Get(seen, 4, MPI_LONG, next, 4096, 4, MPI_LONG, win));
  CALL(MPI_Win_flush(next, win));
  for (int i = 0; i < 4; ++i) CHECK(seen[i] == 7L * (4096 + i) + next, "rank %d got %ld", rank, seen[i]);
  CALL(MPI_Put(&value, 1, MPI_LONG, next, 3, 1, MPI_LONG, win));
  for (int i = 0; i < 100; ++i) CALL(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, 100000, MPI_SUM, win));
  CALL(MPI_Win_unlock(next, win));
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  CHECK(memory[3] == 1000L * round + one_before, "rank %d has %ld", rank, memory[3]);
  CHECK(memory[100000] == 7L * 100000 + rank + 100L * (round + 1), "rank %d has %ld", rank, memory[100000]);
  CALL(MPI_Win_unlock(rank, win));
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  memory = malloc(words * sizeof *memory);
  for (int i = 0; i < words; ++i) memory[i] = i < mine_at ? 7L * i + rank : 0;
  pthread_t thread;
  pthread_create(&thread, NULL, use_memory, NULL);
  for (int round = 0; round < rounds; ++round) {
    MPI_Win win;
    CALL(MPI_Win_create(memory, words * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    reach_the_next(win, rank, size, round);
    CALL(MPI_Win_free(&win));
    /* What was put is there when the memory is the program's own again. */
    CHECK(memory[3] == 1000L * round + (rank + size - 1) % size, "rank %d has %ld", rank, memory[3]);
  }
  atomic_store(&leave, 1);
  pthread_join(thread, NULL);
  check_own_words(rank);
  for (int i = 4; i < mine_at; ++i) {
    const long added = i == 100000 ? 100L * rounds : 0;
    if (memory[i] == 7L * i + rank + added) continue;
    CHECK(0, "rank %d: word %d is %ld", rank, i, memory[i]);
    break;
  }
  free(memory);
  return finish();
}
