/* OPTIONS: --set FARSUM_MPI_STATS=1 --say-once "one-sided calls of 2 ranks" --say Win_fence
 * NOT FOR: impi mpich openmpi openmpi5
 * OVER NODES: --match "Put +owner +2 +0 +2"
 * A program of MPI-4's sessions, without MPI_Init: windows come and go, and the session ends. */
#include "sessions.h"

#ifdef MPI_SESSION_NULL
static int one_session(void) {
  MPI_Session session;
  CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  MPI_Comm comm = everyone_of(session, "farsum");
  for (int round = 0; round < 2; ++round) one_window(comm); /* the engine ends with the last window and begins anew */
  CALL(MPI_Comm_free(&comm));
  CALL(MPI_Session_finalize(&session));
  return 1;
}
#endif

RUN_WITH_SESSIONS(one_session)
