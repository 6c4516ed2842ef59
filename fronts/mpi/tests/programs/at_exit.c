/* Windows are used and freed, errors raised and asked for, in an exit handler that was there before MPI: it runs when
 * what began later has ended, statics of libraries and the thread's own among it. MPI ends there, too. */
#include "check.h"

static MPI_Win kept;
static long* memory;

static void raise_error(int wrong_rank) {
  char text[MPI_MAX_ERROR_STRING] = "";
  char wanted[64];
  const long one = 1;
  int length = 0, class = MPI_SUCCESS;
  CALL(MPI_Win_lock_all(0, kept));
  const int code = MPI_Put(&one, 1, MPI_LONG, wrong_rank, 0, 1, MPI_LONG, kept);
  CALL(MPI_Win_unlock_all(kept));
  CALL(MPI_Error_class(code, &class));
  CALL(MPI_Error_string(code, text, &length));
  snprintf(wanted, sizeof wanted, "%d", wrong_rank);
  CHECK(class == MPI_ERR_RANK, "class %d", class);
  CHECK(strstr(text, "a name of some length") != NULL && strstr(text, wanted) != NULL, "'%s'", text);
}

static void put_to_right(long value) {
  const int size = ranks_of(MPI_COMM_WORLD), right = (my_rank(MPI_COMM_WORLD) + 1) % size;
  CALL(MPI_Win_fence(0, kept));
  CALL(MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, kept));
  CALL(MPI_Win_fence(0, kept));
  CHECK(*memory == value, "%ld", *memory);
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, kept));
}

static void end(void) {
  put_to_right(2);
  for (int i = 0; i < 3; ++i) raise_error(ranks_of(MPI_COMM_WORLD) + 100 + i);
  CALL(MPI_Win_free(&kept));
  if (finish() != 0) _Exit(1);
}

int main(int argc, char** argv) {
  atexit(end);
  MPI_Init(&argc, &argv);
  CALL(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &kept));
  CALL(MPI_Win_set_name(kept, "a name of some length, which no short string holds in itself"));
  CALL(MPI_Win_set_errhandler(kept, MPI_ERRORS_RETURN));
  put_to_right(1);
  raise_error(ranks_of(MPI_COMM_WORLD));
  return 0;
}
