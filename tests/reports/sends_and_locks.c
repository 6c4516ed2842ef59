/* A rank that waits for a window's lock while a message of its own is on the way, which the lock's holder receives
 * first.
 *
 * EXPECTED: both end: the library makes progress with the message inside the calls of one-sided communication
 * (MPI-4.1 3.5 and 12.7.3).
 */
#include "report.h"

enum { items = 1 << 20, rounds = 5 };

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int *memory, value = 0;
  int* const message = calloc(items, sizeof *message);
  MPI_Win win;
  CALL(MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  for (int round = 1; round <= rounds; ++round) {
    if (my_rank == 1) {
      CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
      memory[0] = round;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
      for (int i = 0; i < items; ++i) message[i] = i + round;
      MPI_Request request;
      MPI_Isend(message, items, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
      CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
      CALL(MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win));
      CALL(MPI_Win_unlock(1, win));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(value == 10 * round, "round %d: the lock came early, with %d", round, value);
    } else {
      MPI_Recv(message, items, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(message[items - 1] == items - 1 + round, "the message ends with %d", message[items - 1]);
      memory[0] = 10 * round;
      CALL(MPI_Win_unlock(1, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CALL(MPI_Win_free(&win));
  free(message);
  return finish();
}
