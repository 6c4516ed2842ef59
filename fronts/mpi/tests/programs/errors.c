/* Each misuse raises the class that the standard names, through the window's error handler, with a sentence. */
#include "check.h"

static MPI_Win win;
static int handled, class_told;
static char told[MPI_MAX_ERROR_STRING];

/* What the call returns then is the library's to say: see handlers.c. */
static void count_calls(MPI_Win* which, int* code, ...) {
  int length = 0;
  CHECK(*which == win, "the handler got another window");
  MPI_Error_class(*code, &class_told);
  MPI_Error_string(*code, told, &length);
  ++handled;
}

static const char* class_name(int error_class) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error_class, text, &length);
  return text;
}

#define EXPECT(expected, expression)                                                                       \
  do {                                                                                                     \
    const int before = handled;                                                                            \
    class_told = MPI_SUCCESS;                                                                              \
    (void)(expression);                                                                                    \
    CHECK(class_told == (expected), "class %d, not %d: %s", class_told, (expected), class_name(expected)); \
    CHECK(strstr(told, "MPI_") == told, "the sentence is '%s'", told);                                     \
    CHECK(handled == before + 1, "the handler was called %d times", handled - before);                     \
  } while (0)

static void operations(int size) {
  int word = 0, result = 0;
  MPI_Datatype mixed;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, lengths, places, types, &mixed);
  MPI_Type_commit(&mixed);
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Put(&word, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  CALL(MPI_Win_lock_all(0, win));
  EXPECT(MPI_ERR_RANK, MPI_Put(&word, 1, MPI_INT, size, 0, 1, MPI_INT, win));
  EXPECT(MPI_ERR_RANK, MPI_Put(&word, 1, MPI_INT, -7, 0, 1, MPI_INT, win));
  EXPECT(MPI_ERR_COUNT, MPI_Put(&word, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
  EXPECT(MPI_ERR_TYPE, MPI_Put(&word, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
  EXPECT(MPI_ERR_DISP, MPI_Put(&word, 1, MPI_INT, 0, -4, 1, MPI_INT, win));
  EXPECT(MPI_ERR_RMA_RANGE, MPI_Put(&word, 1, MPI_INT, 0, 1000, 1, MPI_INT, win));
  EXPECT(MPI_ERR_RMA_RANGE, MPI_Get(&word, 1, MPI_INT, 0, 1000, 1, MPI_INT, win));
  EXPECT(MPI_ERR_RMA_RANGE, MPI_Accumulate(&word, 1, MPI_INT, 0, 1000, 1, MPI_INT, MPI_SUM, win));
  EXPECT(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&word, &result, MPI_INT, 0, 1000, MPI_SUM, win));
  EXPECT(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win));
  EXPECT(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win));
  EXPECT(MPI_ERR_TYPE, MPI_Accumulate(&word, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win));
  EXPECT(MPI_ERR_TYPE, MPI_Compare_and_swap(&word, &word, &result, MPI_FLOAT, 0, 0, win));
  EXPECT(MPI_ERR_TYPE, MPI_Fetch_and_op(&word, &result, mixed, 0, 0, MPI_SUM, win));
  CALL(MPI_Win_unlock_all(win));
  MPI_Type_free(&mixed);
}

static void epochs(int size) {
  MPI_Group group, none;
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  EXPECT(MPI_ERR_LOCKTYPE, MPI_Win_lock(4711, 0, 0, win));
  EXPECT(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
  EXPECT(MPI_ERR_ASSERT, MPI_Win_fence(1 << 28, win));
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
  CALL(MPI_Win_unlock(0, win));
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_excl(group, 0, NULL, &none);
  MPI_Group_free(&group);
  MPI_Group_free(&none);
  EXPECT(MPI_ERR_GROUP, MPI_Win_post(MPI_GROUP_NULL, 0, win));
}

static void flavours(void) {
  int word = 0;
  EXPECT(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &word, sizeof word));
  EXPECT(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, &word));
}

/* Before there is a window the communicator's handler is called, on every rank. */
static void creation(void) {
  MPI_Win none = MPI_WIN_NULL;
  int error_class = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int code = MPI_Win_create(NULL, my_rank(MPI_COMM_WORLD) == 0 ? -1 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &none);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_SIZE, "class %d for a negative size on rank 0", error_class);
  code = MPI_Win_create(NULL, 0, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &none);
  MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_DISP, "class %d for a unit of 0", error_class);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int* memory = NULL;
  MPI_Errhandler handler;
  CALL(MPI_Win_allocate(4000, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Win_create_errhandler(count_calls, &handler);
  MPI_Win_set_errhandler(win, handler);
  operations(ranks_of(MPI_COMM_WORLD));
  epochs(ranks_of(MPI_COMM_WORLD));
  flavours();
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  CALL(MPI_Win_free(&win));
  creation();
  return finish();
}
