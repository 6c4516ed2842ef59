/* Events of coarrays: who waits holds MPI_Win_lock_all with MPI_MODE_NOCHECK and looks at its own memory, who posts
 * takes an exclusive lock and adds one.
 *
 * RUN: ranks=2,4
 *
 * EXPECTED: the waiter sees every post, and the program ends. MPI_MODE_NOCHECK says that the caller holds or asks for
 * no conflicting lock, so that the library need take none (MPI-4.1 12.5.5); all libraries take none, and OpenCoarrays
 * counts on it.
 */
#include <unistd.h>

#include "report.h"

enum { rounds = 20, part_bytes = 64 };

static void wait_for(volatile int* count, int expected, MPI_Win win) {
  CALL(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  while (*count < expected) {
    MPI_Win_sync(win);
    usleep(50);
    MPI_Win_flush(my_rank, win);
  }
  CALL(MPI_Win_unlock_all(win));
  CHECK(*count == expected, "%d posts, not %d", *count, expected);
}

static void post_to(int rank, MPI_Win win) {
  const int one = 1;
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
  CALL(MPI_Accumulate(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, win));
  CALL(MPI_Win_unlock(rank, win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* count;
  MPI_Win win;
  CALL(MPI_Win_allocate(part_bytes, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &win));
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my_rank, 0, win));
  *count = 0;
  CALL(MPI_Win_unlock(my_rank, win));
  MPI_Barrier(MPI_COMM_WORLD);
  /* An event goes round: each rank waits for the one before it, except that rank 0 begins. */
  for (int round = 1; round <= rounds; ++round) {
    if (my_rank == 0) post_to(1, win);
    wait_for(count, round, win);
    if (my_rank != 0) post_to((my_rank + 1) % ranks, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_free(&win));
  return finish();
}
