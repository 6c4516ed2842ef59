/* Barriers in a crowded job, whose ranks are all bound to one processor: over communicators of other ranks, or of the
 * same in another order, that come and go under the handles of earlier ones. RANKS: 4
 */
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

enum { rounds = 40 };

static void be_on_one_processor(void) {
  cpu_set_t set;
  int number = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  while (!CPU_ISSET(number, &set)) ++number;
  CPU_ZERO(&set);
  CPU_SET(number, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static volatile int* come; /* how often each rank of the job has come to a barrier */
static int of_job;

/* Whoever is through knows that all have come. `come` counts alike on all ranks of a communicator. */
static void meet(MPI_Comm comm, MPI_Win win, const char* where) {
  MPI_Group members;
  MPI_Group all;
  int size = 0;
  int in_job = 0;
  ++come[of_job];
  const int mine = come[of_job];
  MPI_Win_sync(win);
  MPI_Barrier(comm);
  MPI_Win_sync(win);
  MPI_Comm_size(comm, &size);
  MPI_Comm_group(comm, &members);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (int rank = 0; rank < size; ++rank) {
    MPI_Group_translate_ranks(members, 1, &rank, all, &in_job);
    CHECK(come[in_job] >= mine, "%s: rank %d of the job has come %d times of %d", where, in_job, come[in_job], mine);
  }
  MPI_Group_free(&members);
  MPI_Group_free(&all);
}

static void meet_over_short_lived(int round, MPI_Win win) {
  MPI_Comm copy;
  MPI_Comm part;
  MPI_Comm turned;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  meet(copy, win, "a duplicate");
  MPI_Comm_split(copy, round % 2 == 0 ? of_job % 2 : of_job / 2, of_job, &part);
  MPI_Comm_free(&copy);
  meet(part, win, "a half");
  MPI_Comm_dup(part, &copy);
  MPI_Comm_free(&part);
  meet(copy, win, "a duplicate of a half that is freed");
  MPI_Comm_split(MPI_COMM_WORLD, 0, -of_job, &turned);
  meet(turned, win, "all, the other way round");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&turned);
}

int main(int argc, char** argv) {
  MPI_Win win;
  int* mine = NULL;
  MPI_Aint bytes = 0;
  int unit = 0;
  be_on_one_processor();
  MPI_Init(&argc, &argv);
  of_job = my_rank(MPI_COMM_WORLD);
  MPI_Win_allocate_shared(of_job == 0 ? 64 * (MPI_Aint)sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                          &mine, &win);
  MPI_Win_shared_query(win, 0, &bytes, &unit, &mine);
  come = mine;
  come[of_job] = 0;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < rounds; ++round) {
    meet(MPI_COMM_WORLD, win, "the job");
    meet_over_short_lived(round, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  return finish();
}
