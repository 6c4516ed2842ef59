/* NOT FOR: impi mpich openmpi openmpi5
 * Threads of a program of sessions make their first windows at once, each on a communicator of its own. */
#include <pthread.h>

#include "sessions.h"

#ifdef MPI_SESSION_NULL
enum { threads = 4, rounds = 20 };

static MPI_Comm comms[threads];
static pthread_barrier_t together;

static void* work(void* comm) {
  pthread_barrier_wait(&together);
  for (int round = 0; round < rounds; ++round) one_window(*(MPI_Comm*)comm);
  return NULL;
}

static int all_threads(void) {
  MPI_Session session = session_of_threads();
  if (session == MPI_SESSION_NULL) return 0;
  pthread_t thread[threads];
  for (int i = 0; i < threads; ++i) {
    char tag[32];
    snprintf(tag, sizeof tag, "farsum %d", i);
    comms[i] = everyone_of(session, tag);
  }
  pthread_barrier_init(&together, NULL, threads);
  for (int i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, &comms[i]);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < threads; ++i) CALL(MPI_Comm_free(&comms[i]));
  CALL(MPI_Session_finalize(&session));
  return 1;
}
#endif

RUN_WITH_SESSIONS(all_threads)
