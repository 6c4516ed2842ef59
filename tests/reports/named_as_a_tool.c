/* Programs that have the name of a tool which others run programs with, and are started by their path.
 *
 * RUN: as=time file=time
 * RUN: as=perf file=perf
 * RUN: as=rr file=rr
 * RUN: as=strace file=strace -- -o trace
 *
 * EXPECTED: the MPI program runs: a path that leads to one is that program (mpiexec's <command>, MPI-4.1 11.5).
 */
#include "report.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int *memory, value = 10 + my_rank;
  MPI_Win win;
  CALL(MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(&value, 1, MPI_INT, 1 - my_rank, 3, 1, MPI_INT, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(memory[3] == 11 - my_rank, "%d", memory[3]);
  CALL(MPI_Win_free(&win));
  return finish();
}
