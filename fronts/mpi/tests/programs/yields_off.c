/* Told not to give way, a thread that works never does. A library that is told to, by its launcher, does so where it
 * waits only.
 * Takes seconds: a thread works for 0.4 s, three times
 * OPTIONS: --set FARSUM_MPI_YIELD=0 --set OMPI_MCA_mpi_yield_when_idle=1 */
#include "yields.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int yields_seen = most_yields();
  if (my_rank(MPI_COMM_WORLD) == 0) CHECK(yields_seen == 0, "%d times in 0.4 s", yields_seen);
  return finish();
}
