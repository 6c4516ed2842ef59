/* RANKS: 1
 * OPTIONS: --say-once "farsum: MPI_Win_allocate stays the MPI library's own" --limit 40
 * NOT FOR: impi mpich
 * A window over ranks of this job and of one that it spawned stays the library's, which is said once while the program
 * runs. */
#include "check.h"

/* With the window that the library makes; it may refuse it in its own words. */
static void together(MPI_Comm everyone) {
  int* memory = NULL;
  MPI_Win win;
  const int rank = my_rank(everyone), size = ranks_of(everyone);
  MPI_Comm_set_errhandler(everyone, MPI_ERRORS_RETURN);
  for (int round = 0; round < 2; ++round) {
    if (MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, everyone, &memory, &win) != MPI_SUCCESS) continue;
    CALL(MPI_Win_fence(0, win));
    CALL(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
    CALL(MPI_Win_fence(0, win));
    CHECK(memory[0] == (rank + size - 1) % size, "got %d", memory[0]);
    CALL(MPI_Win_free(&win));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, other, everyone;
  MPI_Comm_get_parent(&parent);
  const int is_parent = parent == MPI_COMM_NULL;
  other = parent;
  if (is_parent) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE) !=
        MPI_SUCCESS) {
      puts("this library spawned no process here");
      MPI_Finalize();
      return 77;
    }
  }
  CALL(MPI_Intercomm_merge(other, !is_parent, &everyone));
  together(everyone);
  MPI_Comm_free(&everyone);
  MPI_Comm_disconnect(&other);
  if (is_parent) return finish();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
