/* MPI_Win_lock with MPI_MODE_NOCHECK beside a lock that another rank holds. As `misuse`, under Farsum alone, since it
 * is an error that libraries need not find: the ranks' own errors with such locks.
 *
 * RUN:
 * RUN: as=misuse with=farsum -- misuse
 *
 * EXPECTED: the call takes no lock and waits for nobody, and its unlock takes nobody's lock away (MPI-4.1 12.5.5: no
 * other process holds or asks for a conflicting lock, so none need be taken). For the ranks' own errors it is a lock as
 * every other: a second lock of the same target and an unlock without a lock are MPI_ERR_RMA_SYNC (12.5.3, 12.6.2).
 */
#include <sched.h>

#include "report.h"

enum { passed = 7, values = 3 };

/* Rank 1 locks, puts and unlocks while rank 0 holds its own memory's lock, then asks for a lock that is one. */
static void pass_the_holder(MPI_Win win) {
  const int value = passed;
  int seen[values] = {0};
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, win));
  CALL(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  CALL(MPI_Win_unlock(0, win));
  MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  CALL(MPI_Get(seen, values, MPI_INT, 0, 0, values, MPI_INT, win));
  CALL(MPI_Win_unlock(0, win));
  CHECK(seen[0] == passed && seen[1] == 1 && seen[2] == 2, "the lock came before its holder's unlock: %d %d %d",
        seen[0], seen[1], seen[2]);
}

static void hold(volatile int* memory, MPI_Win win) {
  MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Win_sync(win));
  CHECK(memory[0] == passed, "the put under MPI_MODE_NOCHECK: %d", memory[0]);
  memory[1] = 1;
  /* Long enough for rank 1 to ask; a lock that is granted wrongly then reads 0. */
  for (int i = 0; i < 1000; ++i) sched_yield();
  memory[2] = 2;
  CALL(MPI_Win_unlock(0, win));
}

static void misuse(int peer, MPI_Win win) {
  const int kinds[4][2] = {{0, 0}, {0, MPI_MODE_NOCHECK}, {MPI_MODE_NOCHECK, 0}, {MPI_MODE_NOCHECK, MPI_MODE_NOCHECK}};
  for (int i = 0; i < 4; ++i) {
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, peer, kinds[i][0], win));
    int class = error_class(MPI_Win_lock(MPI_LOCK_SHARED, peer, kinds[i][1], win));
    CHECK(class == MPI_ERR_RMA_SYNC, "a second lock, %d after %d: class %d", kinds[i][1], kinds[i][0], class);
    CALL(MPI_Win_unlock(peer, win));
    class = error_class(MPI_Win_unlock(peer, win));
    CHECK(class == MPI_ERR_RMA_SYNC, "a second unlock: class %d", class);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* memory;
  MPI_Win win;
  CALL(MPI_Win_allocate(values * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (my_rank == 0) {
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    memset(memory, 0, values * sizeof *memory);
    CALL(MPI_Win_sync(win));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 0) hold(memory, win);
  if (my_rank == 1) pass_the_holder(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (told(argc, argv, "misuse")) misuse(1 - my_rank, win);
  CALL(MPI_Win_free(&win));
  return finish();
}
