/* What one window's handle carries is not found on the next one's: name, attributes and error handler.
 * RANKS: 1 2 */
#include "check.h"

enum { rounds = 20 };

static int deleted;

static int count_deleted(MPI_Win win, int keyval, void* value, void* extra) {
  (void)win, (void)keyval, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static MPI_Win made(void) {
  static long word;
  MPI_Win win;
  CALL(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  return win;
}

static int has_name(MPI_Win win, const char* expected) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  CALL(MPI_Win_get_name(win, name, &length));
  return strcmp(name, expected) == 0;
}

static int has_handler(MPI_Win win, MPI_Errhandler expected) {
  MPI_Errhandler handler;
  CALL(MPI_Win_get_errhandler(win, &handler));
  const int is_expected = handler == expected;
  MPI_Errhandler_free(&handler);
  return is_expected;
}

static int has_attribute(MPI_Win win, int keyval) {
  void* value = NULL;
  int flag = 0;
  CALL(MPI_Win_get_attr(win, keyval, &value, &flag));
  return flag;
}

static void check_fresh(MPI_Win win, int keyval, const char* name) {
  CHECK(has_name(win, name), "the name is another's");
  CHECK(has_handler(win, MPI_ERRORS_ARE_FATAL), "the error handler is another's");
  CHECK(!has_attribute(win, keyval), "the attribute is another's");
}

/* Two at a time: one that carries something, and one that does not. */
static void one_round(int round, int keyval, const char* name) {
  MPI_Win win = made();
  MPI_Win plain = made();
  CHECK(win != plain, "two windows have one handle");
  check_fresh(win, keyval, name);
  check_fresh(plain, keyval, name);
  const int before = deleted;
  switch (round % 3) {
    case 0:
      CALL(MPI_Win_set_name(win, "marked"));
      break;
    case 1:
      CALL(MPI_Win_set_attr(win, keyval, &deleted));
      break;
    case 2:
      CALL(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
      break;
  }
  CALL(MPI_Win_free(&plain));
  CHECK(deleted == before, "the delete callback has run for the other window");
  CALL(MPI_Win_free(&win));
  CHECK(deleted == before + (round % 3 == 1), "the delete callback has run %d times", deleted - before);
  CHECK(win == MPI_WIN_NULL && plain == MPI_WIN_NULL, "a handle is still set");
}

/* A handle that was kept beside the one that was set to MPI_WIN_NULL. */
static void freed_twice(void) {
  MPI_Win win = made();
  MPI_Win kept = win;
  CALL(MPI_Win_free(&win));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int refusal = MPI_SUCCESS;
  MPI_Error_class(MPI_Win_free(&kept), &refusal);
  CHECK(refusal == MPI_ERR_WIN, "class %d", refusal);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  win = made();
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int keyval = MPI_KEYVAL_INVALID;
  CALL(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deleted, &keyval, NULL));
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Win first = made();
  CALL(MPI_Win_get_name(first, name, &length));
  CALL(MPI_Win_free(&first));
  for (int round = 0; round < rounds; ++round) one_round(round, keyval, name);
  freed_twice();
  CALL(MPI_Win_free_keyval(&keyval));
  return finish();
}
