/* Far more ranks than processors: windows of both kinds, sums, fences and locks of all end, with the right sums.
 *
 * RANKS: 8
 * CROWD: 64
 * In make test-all (*.64): 64 ranks on a few processors
 */
#include <stdint.h>

#include "check.h"

static int rank;
static int ranks;

static void sum_into_all(MPI_Win win, int64_t* mine) {
  const int64_t operand = rank + 1;
  mine[0] = mine[1] = 0;
  MPI_Win_fence(0, win);
  for (int target = 0; target < ranks; ++target)
    MPI_Accumulate(&operand, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  CHECK(mine[0] == (int64_t)ranks * (ranks + 1) / 2, "between fences: %lld", (long long)mine[0]);
  MPI_Win_lock_all(0, win);
  MPI_Accumulate(&operand, 1, MPI_INT64_T, (rank + 1) % ranks, 1, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Accumulate(&operand, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  const int64_t from_left = (rank + ranks - 1) % ranks + 1;
  const int64_t from_all = rank == 0 ? (int64_t)ranks * (ranks + 1) / 2 : 0;
  CHECK(mine[1] == from_left + from_all, "under locks of all: %lld", (long long)mine[1]);
  MPI_Win_unlock(rank, win);
}

int main(int argc, char** argv) {
  MPI_Win win;
  int64_t* allocated = NULL;
  int64_t own[2];
  MPI_Init(&argc, &argv);
  rank = my_rank(MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Win_allocate(sizeof own, sizeof own[0], MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win);
  sum_into_all(win, allocated);
  MPI_Win_free(&win);
  MPI_Win_create(own, sizeof own, sizeof own[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  sum_into_all(win, own);
  MPI_Win_free(&win);
  return finish();
}
