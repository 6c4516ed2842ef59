/* For the test programs of MPI-4's sessions, which have no MPI_Init. */
#ifndef FARSUM_MPI_TESTS_SESSIONS_H
#define FARSUM_MPI_TESTS_SESSIONS_H

#include "check.h"

#ifdef MPI_SESSION_NULL

static inline MPI_Comm everyone_of(MPI_Session session, const char* tag) {
  MPI_Group group;
  MPI_Comm comm;
  CALL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CALL(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI_Group_free(&group);
  return comm;
}

static inline void one_window(MPI_Comm comm) {
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

/* MPI_SESSION_NULL where the library provides no MPI_THREAD_MULTIPLE. */
static inline MPI_Session session_of_threads(void) {
  MPI_Session session;
  MPI_Info wish, answer;
  char level[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Info_create(&wish);
  MPI_Info_set(wish, "thread_level", "MPI_THREAD_MULTIPLE");
  CALL(MPI_Session_init(wish, MPI_ERRORS_RETURN, &session));
  CALL(MPI_Session_get_info(session, &answer));
  MPI_Info_get(answer, "thread_level", MPI_MAX_INFO_VAL, level, &found);
  MPI_Info_free(&wish);
  MPI_Info_free(&answer);
  if (found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0) return session;
  CALL(MPI_Session_finalize(&session));
  return MPI_SESSION_NULL;
}

/* MPICH 4 and Intel MPI crash by themselves in every call that makes a window of a program without MPI_Init. */
static inline int library_can(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0;
  MPI_Get_library_version(version, &length);
  const int is_mpich_4 = sscanf(version, "MPICH Version: %d", &major) == 1 && major == 4;
  return !is_mpich_4 && strstr(version, "Intel") == NULL;
}

/* 77: a reported skip. */
static inline int run_with_sessions(int (*test)(void)) {
  if (!library_can()) {
    puts("this library makes no windows without MPI_Init");
    return 77;
  }
  if (!test()) {
    puts("this library provides no MPI_THREAD_MULTIPLE");
    return 77;
  }
  if (failures == 0) puts("all checks passed");
  return failures == 0 ? 0 : 1;
}

/* `test` is false where the library cannot do what it needs. */
#define RUN_WITH_SESSIONS(test) \
  int main(void) { return run_with_sessions(test); }

#else

#define RUN_WITH_SESSIONS(test)       \
  int main(void) {                    \
    puts("this MPI has no sessions"); \
    return 77;                        \
  }

#endif
#endif
