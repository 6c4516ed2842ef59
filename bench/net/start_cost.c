/* What MPI_Init, the first window and the next one take, in plain MPI; it knows nothing of Farsum. One JSON object,
 * milliseconds: of MPI_Init the rank's that came last, which waits for nobody; of the others, after a barrier, the
 * slowest rank's. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double slowest(double ms) {
  double most = 0;
  MPI_Allreduce(&ms, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

/* A window, and a put to the last rank that has arrived. Negative where the library cannot make one. */
static double time_of_window(int last) {
  MPI_Win window;
  long* memory = NULL;
  const long word = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_ms();
  int result = MPI_Win_allocate(sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  int worst = 0;
  MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (worst != MPI_SUCCESS) return -1;
  MPI_Win_lock(MPI_LOCK_SHARED, last, 0, window);
  MPI_Put(&word, 1, MPI_LONG, last, 0, 1, MPI_LONG, window);
  MPI_Win_unlock(last, window);
  const double took = slowest(now_ms() - begin);
  MPI_Win_free(&window);
  return took;
}

int main(int argc, char** argv) {
  const double begin = now_ms();
  MPI_Init(&argc, &argv);
  double init = now_ms() - begin;
  double least_init = 0;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(&init, &least_init, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  const double first = time_of_window(size - 1);
  const double second = time_of_window(size - 1);
  if (rank == 0) printf("{\"init\": %.3f, \"first\": %.3f, \"next\": %.3f}\n", least_init, first, second);
  fflush(stdout);
  return MPI_Finalize();
}
