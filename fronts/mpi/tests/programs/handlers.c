/* BARE
 * What a call returns once an error handler of the program has run: what the library returns then. MPICH 5 returns
 * MPI_SUCCESS; all others what the handler has left of the code, but Open MPI in its operations, which return the code.
 * This program passes without Farsum as it does with it. */
#include "check.h"

static int succeeds_always, is_open_mpi;
static int handled, leaves, class_handled, leave_as_is;

static void note(int* code) {
  ++handled;
  MPI_Error_class(*code, &class_handled);
  if (!leave_as_is) *code = leaves;
}
static void of_window(MPI_Win* win, int* code, ...) {
  (void)win;
  note(code);
}
static void of_communicator(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  note(code);
}

static void expect_of(int result, int wanted_class, const char* what) {
  int error_class = MPI_SUCCESS;
  CHECK(handled == 1, "%s: the handler ran %d times", what, handled);
  CHECK(class_handled == wanted_class, "%s: it was told class %d", what, class_handled);
  if (succeeds_always) {
    CHECK(result == MPI_SUCCESS, "%s: returned %d", what, result);
  } else if (leave_as_is) {
    MPI_Error_class(result, &error_class);
    CHECK(error_class == wanted_class, "%s: returned class %d", what, error_class);
  } else {
    CHECK(result == leaves, "%s: returned %d, the handler left %d", what, result, leaves);
  }
}

static void calls(MPI_Win win, MPI_Comm comm) {
  long word = 0;
  MPI_Win none = MPI_WIN_NULL;
  const int size = ranks_of(MPI_COMM_WORLD);
#define EXPECT(wanted_class, expression)                  \
  do {                                                    \
    handled = class_handled = 0;                          \
    expect_of((expression), (wanted_class), #expression); \
  } while (0)
  EXPECT(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size + 5, 0, win));
  EXPECT(MPI_ERR_SIZE, MPI_Win_create(&word, -1, 1, MPI_INFO_NULL, comm, &none));
  if (is_open_mpi && !leave_as_is) return;
  CALL(MPI_Win_lock_all(0, win));
  /* The front refuses these at different depths; none may be carried out after all. */
  EXPECT(MPI_ERR_RANK, MPI_Put(&word, 1, MPI_LONG, size + 5, 0, 1, MPI_LONG, win));
  EXPECT(MPI_ERR_COUNT, MPI_Put(&word, -1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
  EXPECT(MPI_ERR_TYPE, MPI_Get(&word, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_LONG, win));
  EXPECT(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_OP_NULL, win));
  CALL(MPI_Win_unlock_all(win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0;
  MPI_Get_library_version(version, &length);
  if (sscanf(version, "MPICH Version: %d", &major) == 1) succeeds_always = major >= 5;
  is_open_mpi = strncmp(version, "Open MPI", 8) == 0;
  long* memory = NULL;
  MPI_Win win;
  MPI_Comm comm;
  MPI_Errhandler handler;
  CALL(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 100; ++i) { /* more than there is room for, if each took some */
    MPI_Win_create_errhandler(of_window, &handler);
    MPI_Errhandler_free(&handler);
  }
  MPI_Win_create_errhandler(of_window, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_create_errhandler(of_communicator, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  leave_as_is = 1;
  calls(win, comm);
  leave_as_is = 0;
  for (leaves = 0; leaves < 3; ++leaves) calls(win, comm);
  MPI_Comm_free(&comm);
  CALL(MPI_Win_free(&win));
  return finish();
}
