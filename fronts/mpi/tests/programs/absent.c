/* RANKS: 1
 * Programs for old and new libraries at once, as mpi4py, ask by a weak symbol whether a call is there, which Farsum's
 * own answers. What the library then lacks must not look like an error of its own. */
#include "check.h"

#ifndef MPI_SESSION_NULL
extern int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, void** session);
#pragma weak MPI_Session_init

static void ask_for_a_session(void) {
  const int not_there_for_mpi4py = -1431655766;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  void* session = NULL;
  CALL(MPI_Get_library_version(version, &length));
  if (strstr(version, "Open MPI v4") == NULL) return;
  CHECK(MPI_Session_init != NULL, "the test is not run with Farsum");
  if (MPI_Session_init == NULL) return;
  const int result = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  CHECK(result == not_there_for_mpi4py, "returned %d", result);
}
#else
static void ask_for_a_session(void) {}
#endif

int main(int argc, char** argv) {
  CALL(MPI_Init(&argc, &argv));
  ask_for_a_session();
  return finish();
}
