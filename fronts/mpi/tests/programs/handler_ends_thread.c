/* An error handler that ends the thread whose call failed: the thread unwinds through the front, and the window is as
 * it was. RANKS: 1 2 */
#include <pthread.h>

#include "check.h"

static MPI_Win win;
static int ended;

static void end_thread(MPI_Win* failed, int* code, ...) {
  (void)failed;
  (void)code;
  pthread_exit(&ended);
}

static void* fail(void* nobody) {
  (void)nobody;
  MPI_Win_lock(MPI_LOCK_SHARED, ranks_of(MPI_COMM_WORLD), 0, win);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  long* word = NULL;
  const long one = 1;
  MPI_Errhandler handler;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  CALL(MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &win));
  *word = 0;
  CALL(MPI_Win_create_errhandler(end_thread, &handler));
  CALL(MPI_Win_set_errhandler(win, handler));
  CALL(MPI_Errhandler_free(&handler));
  for (int round = 0; round < 3; ++round) {
    pthread_t thread;
    void* result = NULL;
    CHECK(pthread_create(&thread, NULL, fail, NULL) == 0, "no thread");
    pthread_join(thread, &result);
    CHECK(result == &ended, "the thread went on behind its handler");
  }
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(my_rank(MPI_COMM_WORLD) != 0 || *word == ranks_of(MPI_COMM_WORLD), "%ld", *word);
  CALL(MPI_Win_free(&win));
  return finish();
}
