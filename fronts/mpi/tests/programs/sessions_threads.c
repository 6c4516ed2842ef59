/* Threads of a program of sessions make their first windows at once, each on a communicator of its own. */
#include <pthread.h>

#include "check.h"

#ifdef MPI_SESSION_NULL
enum { threads = 4, rounds = 20 };

static MPI_Comm comms[threads];
static pthread_barrier_t together;

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

static void* work(void* comm) {
  pthread_barrier_wait(&together);
  for (int round = 0; round < rounds; ++round) one_window(*(MPI_Comm*)comm);
  return NULL;
}

static MPI_Session open_session(int* many_threads) {
  MPI_Session session;
  MPI_Info wish, answer;
  char level[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Info_create(&wish);
  MPI_Info_set(wish, "thread_level", "MPI_THREAD_MULTIPLE");
  CALL(MPI_Session_init(wish, MPI_ERRORS_RETURN, &session));
  CALL(MPI_Session_get_info(session, &answer));
  MPI_Info_get(answer, "thread_level", MPI_MAX_INFO_VAL, level, &found);
  *many_threads = found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
  MPI_Info_free(&wish);
  MPI_Info_free(&answer);
  return session;
}

static void all_threads(MPI_Session session) {
  pthread_t thread[threads];
  MPI_Group group;
  CALL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  for (int i = 0; i < threads; ++i) {
    char tag[32];
    snprintf(tag, sizeof tag, "farsum %d", i);
    CALL(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comms[i]));
  }
  MPI_Group_free(&group);
  pthread_barrier_init(&together, NULL, threads);
  for (int i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, &comms[i]);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < threads; ++i) CALL(MPI_Comm_free(&comms[i]));
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
  int many_threads = 0;
  if (!library_can()) {
    puts("this library makes no windows without MPI_Init");
    return 77;
  }
  MPI_Session session = open_session(&many_threads);
  if (many_threads) all_threads(session);
  CALL(MPI_Session_finalize(&session));
  if (!many_threads) puts("this library provides no MPI_THREAD_MULTIPLE");
  if (!many_threads) return 77;
  if (failures == 0) puts("all checks passed");
  return failures == 0 ? 0 : 1;
}
#else
int main(void) {
  puts("this MPI has no sessions");
  return 77;
}
#endif
