/* OPTIONS: --expect-failure --limit 20 --match "ranks? (0 .process .*, )?1 .process .* ended before MPI_Finalize"
 * A rank that dies while another waits for it in a fence ends the job within seconds, and is named, also where the
 * launcher kills the others before they can; the witness may see two ends at once. */
#include <signal.h>

#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void* memory = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_fence(0, win));
  if (my_rank(MPI_COMM_WORLD) == 1) raise(SIGKILL);
  CALL(MPI_Win_fence(0, win));
  return finish();
}
