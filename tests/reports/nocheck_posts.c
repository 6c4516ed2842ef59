/* MPI_Win_post and MPI_Win_start with MPI_MODE_NOCHECK on both sides, each between plain ones.
 *
 * EXPECTED: a start with MPI_MODE_NOCHECK belongs to the post that came before it, and the next plain start waits for
 * the next post (MPI-4.1 12.5.2, 12.5.5): what the origin then gets is what the target stored before that post.
 */
#include <sched.h>

#include "report.h"

enum { rounds = 40 };

static int origin_gets(MPI_Group target, int assertion, MPI_Win win) {
  int got = -1;
  CALL(MPI_Win_start(target, assertion, win));
  CALL(MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  CALL(MPI_Win_complete(win));
  return got;
}

static void target_shows(volatile int* memory, int value, MPI_Group origin, int assertion, MPI_Win win) {
  /* A start that has gone ahead reads the value before. */
  for (int i = 0; i < 100; ++i) sched_yield();
  *memory = value;
  CALL(MPI_Win_post(origin, assertion, win));
  /* The promise of a start with MPI_MODE_NOCHECK is that the post is over. */
  if (assertion != 0) MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_wait(win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* memory;
  MPI_Win win;
  CALL(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  const int peer = 1 - my_rank;
  MPI_Group all, other;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &peer, &other);
  *memory = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 1; round <= rounds; ++round) {
    /* Two with, then two without, and so on. */
    const int assertion = round / 2 % 2 == 0 ? MPI_MODE_NOCHECK : 0;
    if (my_rank == 0) {
      target_shows(memory, round, other, assertion, win);
    } else {
      if (assertion != 0) MPI_Barrier(MPI_COMM_WORLD);
      const int got = origin_gets(other, assertion, win);
      CHECK(got == round, "round %d, assertion %d: got %d", round, assertion, got);
    }
  }
  MPI_Group_free(&other);
  MPI_Group_free(&all);
  CALL(MPI_Win_free(&win));
  return finish();
}
