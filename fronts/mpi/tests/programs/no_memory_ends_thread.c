/* An error handler that ends the thread whose call found no memory: it is called once, and the thread unwinds through
 * what was thrown. RANKS: 1 */
#include "starve.inl"

#include <pthread.h>

static MPI_Win win;
static double values[4096];
static int ended;

static void end_thread(MPI_Win* failed, int* code, ...) {
  left = -1;
  on_window(failed, code);
  pthread_exit(&ended);
}

static void* attach(void* granted) {
  left = *(const long*)granted;
  MPI_Win_attach(win, values, sizeof values);
  left = -1;
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Errhandler handler;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  find_allocators();
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_create_errhandler(end_thread, &handler));
  CALL(MPI_Win_set_errhandler(win, handler));
  CALL(MPI_Errhandler_free(&handler));
  /* With none, one, two ... allocations granted, until the call succeeds. */
  void* result = &ended;
  long granted = 0;
  for (; result == &ended && granted < 1000; ++granted) {
    const int before = handled;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, attach, &granted) == 0, "no thread");
    pthread_join(thread, &result);
    CHECK(handled == before + (result == &ended), "the handler was called %d times", handled - before);
  }
  CHECK(result == NULL && granted > 1, "%ld allocations granted", granted);
  CALL(MPI_Win_detach(win, values));
  CALL(MPI_Win_free(&win));
  return finish();
}
