/* OPTIONS: --set FARSUM_MPI_STATS=1 --say-once "one-sided calls of 2 ranks" --say Win_fence
 * A program of MPI-4's sessions, without MPI_Init: windows come and go, and the session ends. */
#include "check.h"

#ifdef MPI_SESSION_NULL
static void one_window(MPI_Comm comm) {
  int* memory = NULL;
  MPI_Win win;
  const int rank = my_rank(comm), size = ranks_of(comm);
  CALL(MPI_Win_allocate(64, 4, MPI_INFO_NULL, comm, &memory, &win));
  memory[3] = -1;
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 3, 1, MPI_INT, win));
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(memory[3] == (rank + size - 1) % size, "got %d", memory[3]);
  CALL(MPI_Win_free(&win));
}

static void one_session(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  CALL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CALL(MPI_Comm_create_from_group(group, "farsum", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI_Group_free(&group);
  for (int round = 0; round < 2; ++round) one_window(comm); /* the engine ends with the last window and begins anew */
  CALL(MPI_Comm_free(&comm));
  CALL(MPI_Session_finalize(&session));
}

/* MPICH 4 and Intel MPI crash by themselves in every call that makes a window of a program without MPI_Init. */
static int library_can(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0;
  MPI_Get_library_version(version, &length);
  const int is_mpich_4 = sscanf(version, "MPICH Version: %d", &major) == 1 && major == 4;
  return !is_mpich_4 && strstr(version, "Intel") == NULL;
}

int main(void) {
  if (!library_can()) {
    puts("this library makes no windows without MPI_Init");
    return 77;
  }
  one_session();
  if (failures == 0) puts("all checks passed");
  return failures == 0 ? 0 : 1;
}
#else
int main(void) {
  puts("this MPI has no sessions");
  return 77;
}
#endif
