/* MPI_Finalize with windows alive, one of them locked by one rank only: it ends, and so does the job.
 * RANKS: 1 2 3 */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void* memory = NULL;
  MPI_Win allocated, created;
  static int word;
  CALL(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &allocated));
  CALL(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
  CALL(MPI_Win_fence(0, created));
  if (my_rank(MPI_COMM_WORLD) == 0) CALL(MPI_Win_lock_all(0, allocated));
  return finish();
}
