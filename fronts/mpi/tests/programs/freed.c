/* A window that was freed is refused by the calls that its handle is given to; its name and handler may still be read.
 */
#include "check.h"

#define REFUSED(call)                                                                                  \
  do {                                                                                                 \
    const int code = (call);                                                                           \
    int class_of_code = MPI_SUCCESS;                                                                   \
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class_of_code);                                    \
    CHECK(class_of_code == MPI_ERR_WIN || class_of_code == MPI_ERR_ARG, #call " took a freed window"); \
  } while (0)

int main(int argc, char** argv) {
  CALL(MPI_Init(&argc, &argv));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  long word = 0, mine = 1;
  MPI_Win win;
  CALL(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win freed = win;
  CALL(MPI_Win_free(&win));
  MPI_Group group;
  REFUSED(MPI_Win_fence(0, freed));
  REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, freed));
  REFUSED(MPI_Win_lock_all(0, freed));
  REFUSED(MPI_Put(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, freed));
  REFUSED(MPI_Get(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, freed));
  REFUSED(MPI_Accumulate(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, freed));
  REFUSED(MPI_Fetch_and_op(&mine, &word, MPI_LONG, 0, 0, MPI_SUM, freed));
  REFUSED(MPI_Win_flush(0, freed));
  REFUSED(MPI_Win_sync(freed));
  REFUSED(MPI_Win_set_name(freed, "freed"));
  REFUSED(MPI_Win_get_group(freed, &group));
  REFUSED(MPI_Win_free(&freed));
  return finish();
}
