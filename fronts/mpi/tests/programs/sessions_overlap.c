/* NOT FOR: impi mpich openmpi openmpi5
 * Threads open and finalize sessions of their own: one's may be the last of its rank while the other's is still to be
 * opened, on some ranks and not on others. */
#include <dlfcn.h>
#include <pthread.h>

#include "sessions.h"

#ifdef MPI_SESSION_NULL
enum { threads = 2, rounds = 40 };

static pthread_barrier_t together;

static void* work(void* number) {
  for (int round = 0; round < rounds; ++round) {
    char tag[32];
    pthread_barrier_wait(&together);
    MPI_Session session = session_of_threads();
    snprintf(tag, sizeof tag, "farsum %d %d", *(const int*)number, round);
    MPI_Comm comm = everyone_of(session, tag);
    one_window(comm);
    CALL(MPI_Comm_free(&comm));
    CALL(MPI_Session_finalize(&session));
  }
  return NULL;
}

/* The library's own function, behind Farsum's back. */
static void* of_library(const char* name) {
  static const char* const sonames[] = {"libmpi.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"};
  void* library = NULL;
  for (size_t i = 0; i < sizeof sonames / sizeof sonames[0] && library == NULL; ++i) {
    library = dlopen(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
  }
  return library == NULL ? NULL : dlsym(library, name);
}

static int all_threads(void) {
  MPI_Session session = session_of_threads(), librarys;
  if (session == MPI_SESSION_NULL) return 0;
  /* MPICH 5 by itself fails where its last session ends while another begins: it keeps one. */
  int (*init)(MPI_Info, MPI_Errhandler, MPI_Session*) = NULL;
  int (*finalize)(MPI_Session*) = NULL;
  void* found[] = {of_library("PMPI_Session_init"), of_library("PMPI_Session_finalize")};
  memcpy(&init, &found[0], sizeof init);
  memcpy(&finalize, &found[1], sizeof finalize);
  CHECK(init != NULL && finalize != NULL, "the library was not found");
  if (failures != 0) return 1;
  CALL(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &librarys));
  CALL(MPI_Session_finalize(&session));
  pthread_t thread[threads];
  pthread_barrier_init(&together, NULL, threads);
  int numbers[threads];
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    pthread_create(&thread[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  CALL(finalize(&librarys));
  return 1;
}
#endif

RUN_WITH_SESSIONS(all_threads)
