/* OpenMP threads of each rank on one window under MPI_THREAD_MULTIPLE, among them the thread that made it. */
#include "check.h"

enum { updates = 4000 };

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  long expected = 0;
#ifdef _OPENMP
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
#else
  MPI_Init(&argc, &argv);
#endif
  if (provided < MPI_THREAD_MULTIPLE) {
    if (my_rank(MPI_COMM_WORLD) == 0) puts("no MPI_THREAD_MULTIPLE, or no OpenMP");
    MPI_Finalize();
    return 77;
  }
  long* memory = NULL;
  MPI_Win win;
  const int size = ranks_of(MPI_COMM_WORLD);
  CALL(MPI_Win_allocate(2 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  memory[0] = memory[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock_all(0, win));
#ifdef _OPENMP
#pragma omp parallel for num_threads(4) reduction(+ : failures)
#endif
  for (int i = 0; i < updates; ++i) {
    const long one = 1;
    long old = 0;
    CALL(MPI_Fetch_and_op(&one, &old, MPI_LONG, i % size, 0, MPI_SUM, win));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, i % size, 1, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Win_flush(i % size, win));
  }
  CALL(MPI_Win_unlock_all(win));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < updates; ++i) expected += i % size == my_rank(MPI_COMM_WORLD) ? size : 0;
  CHECK(memory[0] == expected && memory[1] == expected, "%ld and %ld, not %ld", memory[0], memory[1], expected);
  CALL(MPI_Win_free(&win));
  return finish();
}
