/* An MPI program that sums into a window of each rank while nobody answers there; each rank checks what it has got. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { rounds = 1000 };

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  int64_t* sum;
  MPI_Win window;
  MPI_Win_allocate(sizeof *sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &window);
  *sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);

  const int64_t mine = rank + 1;
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < rounds; ++round) {
    for (int target = 0; target < ranks; ++target) {
      MPI_Accumulate(&mine, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, window);
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);

  int right = *sum == (int64_t)rounds * ranks * (ranks + 1) / 2, all_right;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %s\n", ranks, all_right ? "right" : "wrong");
  MPI_Win_free(&window);
  MPI_Finalize();
  return all_right ? 0 : 1;
}
