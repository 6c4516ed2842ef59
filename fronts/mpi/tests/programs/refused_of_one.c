/* OPTIONS: --say-once "another rank may not copy from and to others of its node" --say-not "another node"
 * RANKS: 2 4
 * The last rank of one node may not copy from and to the others. The first, who may, says so once, when the first
 * window over memory of the program's own is made, and blames no other node; sums are right on all ranks. */
#include "check.h"

static int last_of_node(void) {
  const char* rank = getenv("PMI_RANK");
  const char* size = getenv("PMI_SIZE");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK"), size = getenv("OMPI_COMM_WORLD_SIZE");
  return rank != NULL && size != NULL && atoi(rank) == atoi(size) - 1;
}

/* Adds one to a number of every rank's. */
static void count_on(MPI_Win win, const long* mine) {
  const long one = 1;
  MPI_Win_fence(0, win);
  for (int target = 0; target < ranks_of(MPI_COMM_WORLD); ++target)
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
  MPI_Win_fence(0, win);
  CHECK(*mine == ranks_of(MPI_COMM_WORLD), "the sum is %ld", *mine);
}

int main(int argc, char** argv) {
  static long own[2];
  MPI_Win win;
  if (last_of_node()) setenv("FARSUM_ATTACH", "refuse", 1);
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 2; ++i) {
    CALL(MPI_Win_create(&own[i], sizeof own[i], sizeof own[i], MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    count_on(win, &own[i]);
    MPI_Win_free(&win);
  }
  return finish();
}
