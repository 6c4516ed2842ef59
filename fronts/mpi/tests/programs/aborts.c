/* A job that ends itself is not said to have lost a rank.
 * OPTIONS: --expect-failure --limit 20 --say-not "before MPI_Finalize" */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank(MPI_COMM_WORLD) == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
