// Paper 3's thread.c: a thread of each process that sits in a blocking send to its own process, on a communicator of
// its own, so that a library that makes progress inside any blocking call makes it while the rank computes.
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

void helper_thread_start(void);
void helper_thread_stop(void);

enum { message_tag = 123 };

static pthread_t thread;
static MPI_Comm thread_comm;

// The paper's MPI_Send blocked, for its libraries buffered nothing to the own rank. Today's may; a synchronous send
// does not.
static void* sit_in_send(void* unused) {
  const int message = 0;
  MPI_Ssend(&message, 1, MPI_INT, 0, message_tag, thread_comm);
  return unused;
}

// Collective: splits the world into communicators of one process each.
void helper_thread_start(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &thread_comm);
  if (pthread_create(&thread, NULL, sit_in_send, NULL) != 0) {
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
}

void helper_thread_stop(void) {
  int message = 0;
  MPI_Recv(&message, 1, MPI_INT, 0, message_tag, thread_comm, MPI_STATUS_IGNORE);
  pthread_join(thread, NULL);
  MPI_Comm_free(&thread_comm);
}
