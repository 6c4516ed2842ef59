/* A window's error handler of the program's own: how often it is called for one error, and what the call returns then.
 *
 * EXPECTED: once, with the window and the class of the error; the call then returns (MPI-4.1 9.3: the handler "is
 * called", and where it returns, the call returns to the program, with an error code of that class or with what the
 * library makes of it).
 */
#include "report.h"

static int called, class_told;
static MPI_Win win_told;

static void on_error(MPI_Win* win, int* code, ...) {
  ++called;
  win_told = *win;
  MPI_Error_class(*code, &class_told);
}

static void expect(MPI_Win win, int class, const char* what) {
  CHECK(called == 1, "%s: called %d times", what, called);
  CHECK(class_told == class, "%s: class %d, not %d", what, class_told, class);
  CHECK(win_told == win, "%s: another window", what);
  called = 0;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long *memory, value = 1;
  MPI_Win win;
  MPI_Errhandler handler;
  CALL(MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Win_create_errhandler(on_error, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Win_lock(MPI_LOCK_SHARED, 77, 0, win);
  expect(win, MPI_ERR_RANK, "a lock of a rank that is not there");
  MPI_Win_lock_all(0, win);
  MPI_Put(&value, -1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
  expect(win, MPI_ERR_COUNT, "a negative count");
  MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_LONG, win);
  expect(win, MPI_ERR_TYPE, "no type");
  MPI_Accumulate(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_OP_NULL, win);
  expect(win, MPI_ERR_OP, "no operator");
  MPI_Win_unlock_all(win);
  CHECK(called == 0, "called %d times for what is right", called);
  MPI_Errhandler_free(&handler);
  CALL(MPI_Win_free(&win));
  return finish();
}
