/* Windows freed in one order here and in another there: no hang, and what lives keeps its contents. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  enum { windows = 4, bytes = 100000 };
  MPI_Win win[windows];
  char* memory[windows];
  for (int i = 0; i < windows; ++i) {
    CALL(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &win[i]));
    memset(memory[i], i + 1, bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < windows; ++i) {
    const int which = rank % 2 == 0 ? i : windows - 1 - i;
    for (int k = 0; k < bytes; k += 997) CHECK(memory[which][k] == which + 1, "byte %d of window %d changed", k, which);
    CALL(MPI_Win_free(&win[which]));
  }
  CALL(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[0], &win[0]));
  CALL(MPI_Win_fence(0, win[0]));
  CALL(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win[0]));
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win[0]));
  int got = -1;
  memcpy(&got, memory[0], sizeof got);
  CHECK(got == (rank + size - 1) % size, "got %d", got);
  CALL(MPI_Win_free(&win[0]));
  return finish();
}
