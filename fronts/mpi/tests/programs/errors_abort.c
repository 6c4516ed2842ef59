/* OPTIONS: --expect-failure --limit 20 --say "MPI_Put on window 'inbox'" --say-not "before MPI_Finalize"
 * NOT FOR: mpich openmpi
 * MPI_ERRORS_ABORT ends the job as the default handler does: the sentence is said first, and no rank is said to have
 * died. */
#include <dlfcn.h>

#include "check.h"

/* Open MPI 4, for whose header this is built, has no such handler, its version 5 has: handles are addresses of data. */
static MPI_Errhandler abort_handler(void) {
#ifdef MPI_ERRORS_ABORT
  return MPI_ERRORS_ABORT;
#else
  void* found = dlsym(RTLD_DEFAULT, "ompi_mpi_errors_abort");
  return found == NULL ? MPI_ERRHANDLER_NULL : (MPI_Errhandler)found;
#endif
}

/* Of MPICH 4.0, every call that is given it fails an assertion. */
static int library_has_it(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0, minor = 1;
  MPI_Get_library_version(version, &length);
  const int is_mpich = sscanf(version, "MPICH Version: %d.%d", &major, &minor) == 2;
  return abort_handler() != MPI_ERRHANDLER_NULL && !(is_mpich && major == 4 && minor == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void* memory = NULL;
  MPI_Win win;
  int word = 0;
  if (!library_has_it()) {
    if (my_rank(MPI_COMM_WORLD) == 0) puts("this library has no MPI_ERRORS_ABORT that works");
    MPI_Finalize();
    return 77;
  }
  CALL(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_set_name(win, "inbox"));
  CALL(MPI_Win_set_errhandler(win, abort_handler()));
  CALL(MPI_Win_fence(0, win));
  if (my_rank(MPI_COMM_WORLD) == 0) MPI_Put(&word, 1, MPI_INT, 1, 1000, 1, MPI_INT, win);
  CALL(MPI_Win_fence(0, win));
  return finish();
}
