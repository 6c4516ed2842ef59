/* A rank that waits in the library lets others run, and where these compute it does not offer them each look: between
 * two yields that took long it sleeps for a while.
 * NOT FOR: impi mpich5 mpich5-abi openmpi openmpi5
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
    const long begin = now_ns();
    is_counted = 1;
    CALL(MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    is_counted = 0;
    const long waited_ns = now_ns() - begin; /* longer than the pause where the machine is busy */
    CHECK(yields >= 1, "a wait of 0.4 s lets nobody run");
    CHECK(yields <= 2 + waited_ns / (slice_ns + sleeps_between_ns), "%d times in %ld ns", yields, waited_ns);
  }
  return finish();
}
