/* An error handler of a communicator that makes a window over it, and meets its ranks, while the call that failed is
 * still under way. Rank 0 alone is at fault, and all are told. RANKS: 2 4 */
#include "check.h"

static int handled;

static void meet(MPI_Comm* comm, int* code, ...) {
  long* word = NULL;
  MPI_Win win;
  ++handled;
  *code = MPI_SUCCESS;
  CALL(MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, *comm, &word, &win));
  CALL(MPI_Barrier(*comm));
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Errhandler handler;
  long word = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(meet, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  for (int round = 0; round < 3; ++round) {
    MPI_Win win = MPI_WIN_NULL;
    const int unit = my_rank(comm) == 0 ? 0 : 1;
    handled = 0;
    MPI_Win_create(&word, sizeof word, unit, MPI_INFO_NULL, comm, &win);
    CHECK(handled == 1, "the handler ran %d times", handled);
  }
  MPI_Comm_free(&comm);
  return finish();
}
