/* A rank that waits in the library lets others run, and where these compute it does not offer them each look: between
 * two yields that took long it sleeps for a while.
 * OPTIONS: --set OMPI_MCA_mpi_yield_when_idle=0
 * NOT FOR: impi mpich5 mpich5-abi
 */
#include "counted_yields.h"

enum { pause_ns = 400000000, sleeps_between_ns = 64 * 20000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank(MPI_COMM_WORLD) == 0) {
    const struct timespec pause = {0, pause_ns};
    nanosleep(&pause, NULL);
    CALL(MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
  } else {
    is_counted = 1;
    CALL(MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    is_counted = 0;
    CHECK(yields >= 1, "a wait of 0.4 s lets nobody run");
    CHECK(yields <= 2 + pause_ns / (slice_ns + sleeps_between_ns), "%d times in 0.4 s", yields);
  }
  return finish();
}
