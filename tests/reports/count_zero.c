/* Operations of count 0, or of a type without data, at a displacement that is not in the window: a global offset into a
 * rank whose part is empty.
 *
 * EXPECTED: success, and nothing is moved: the target accesses no location, so none is outside its window
 * (MPI-4.1 12.3.1, "the data transfer is the same as if ..." a message of zero elements). A negative count stays an
 * error.
 */
#include "report.h"

enum { part = 8 };

static void operate(MPI_Aint at, int peer, int count, MPI_Datatype type, MPI_Win win) {
  long value = 5, got = -1;
  MPI_Request request;
  CALL(MPI_Put(&value, count, type, peer, at, count, type, win));
  CALL(MPI_Get(&got, count, type, peer, at, count, type, win));
  CALL(MPI_Accumulate(&value, count, type, peer, at, count, type, MPI_SUM, win));
  CALL(MPI_Get_accumulate(&value, count, type, &got, count, type, peer, at, count, type, MPI_SUM, win));
  CALL(MPI_Get_accumulate(NULL, 0, type, &got, count, type, peer, at, count, type, MPI_NO_OP, win));
  CALL(MPI_Rput(&value, count, type, peer, at, count, type, win, &request));
  CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CALL(MPI_Rget(&got, count, type, peer, at, count, type, win, &request));
  CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CALL(MPI_Raccumulate(&value, count, type, peer, at, count, type, MPI_SUM, win, &request));
  CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CALL(MPI_Rget_accumulate(&value, count, type, &got, count, type, peer, at, count, type, MPI_SUM, win, &request));
  CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CALL(MPI_Win_flush(peer, win));
  CHECK(got == -1 && value == 5, "got %ld, value %ld", got, value);
}

static void everywhere(int peer, MPI_Win win) {
  const MPI_Aint far[] = {0, 1, part, part + 1, 1000, (MPI_Aint)1 << 40, (MPI_Aint)1 << 61};
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_LONG, &pair);
  MPI_Type_commit(&pair);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CALL(MPI_Win_lock_all(0, win));
  for (size_t i = 0; i < sizeof far / sizeof *far; ++i) {
    operate(far[i], peer, 0, MPI_LONG, win);
    operate(far[i], peer, 0, pair, win);
  }
  CALL(MPI_Put(NULL, 0, MPI_LONG, peer, 1000, 0, MPI_LONG, win));
  long value = 5;
  const int class = error_class(MPI_Put(&value, -1, MPI_LONG, peer, 0, -1, MPI_LONG, win));
  CHECK(class == MPI_ERR_COUNT, "count -1: class %d", class);
  CALL(MPI_Win_unlock_all(win));
  MPI_Type_free(&pair);
}

/* A type without data on both sides, five of them. */
static void without_data(int peer, MPI_Win win) {
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_LONG, &nothing);
  MPI_Type_commit(&nothing);
  long value = 5, got = -1;
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win));
  CALL(MPI_Put(&value, 5, nothing, peer, 1000, 5, nothing, win));
  CALL(MPI_Get(&got, 5, nothing, peer, 1000, 5, nothing, win));
  CALL(MPI_Win_unlock(peer, win));
  CHECK(got == -1, "got %ld", got);
  MPI_Type_free(&nothing);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int peer = 1 - my_rank, items = my_rank == 0 ? 0 : part;
  long* memory;
  MPI_Win win;
  CALL(MPI_Win_allocate(items * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  for (int i = 0; i < items; ++i) memory[i] = 100 + i;
  MPI_Barrier(MPI_COMM_WORLD);
  everywhere(peer, win);
  without_data(peer, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < items; ++i) CHECK(memory[i] == 100 + i, "item %d is %ld", i, memory[i]);
  CALL(MPI_Win_free(&win));
  /* Nothing is attached here. */
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  everywhere(peer, win);
  CALL(MPI_Win_free(&win));
  return finish();
}
