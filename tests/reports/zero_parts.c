/* Parts of 0 bytes: the address that a rank gets for one, and what MPI_Win_detach says of memory that was never
 * attached. DASH attaches no empty part, and detaches every part whose address is not NULL.
 *
 * RUN: on=node
 *
 * EXPECTED: what the library below says. The standard leaves the address of a part of 0 bytes open
 * (MPI-4.1 12.2.2, 12.2.3) and asks of MPI_Win_detach only that the base is one that was attached (12.2.4). MPICH and
 * Intel MPI give NULL and let the detach succeed. Open MPI gives a shared part an address, an allocated one as well
 * where not all are empty, and the detach is an error.
 */
#include "report.h"

#ifdef OPEN_MPI
enum { is_openmpi = 1 };
#else
enum { is_openmpi = 0 };
#endif

static void parts(int bytes_of_first) {
  char *shared = (char*)1, *allocated = (char*)1;
  MPI_Win win;
  const int bytes = my_rank == 0 ? bytes_of_first : 0;
  CALL(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win));
  CALL(MPI_Win_free(&win));
  CALL(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
  CALL(MPI_Win_free(&win));
  const int has_shared = bytes > 0 || is_openmpi;
  const int has_allocated = bytes > 0 || is_openmpi;
  CHECK((shared != NULL) == has_shared, "%d bytes behind %d, shared: %p", bytes, bytes_of_first, (void*)shared);
  /* Where all are empty, Open MPI leaves the address as it was. */
  if (is_openmpi && bytes_of_first == 0) return;
  CHECK((allocated != NULL) == has_allocated, "%d bytes behind %d, allocated: %p", bytes, bytes_of_first,
        (void*)allocated);
}

/* As DASH does, and twice as careless. */
static void detach(void) {
  char mine[64] = {0};
  MPI_Win win;
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  int result = MPI_Win_detach(win, mine);
  CHECK((result != MPI_SUCCESS) == is_openmpi, "detach of what was never attached: class %d", error_class(result));
  CALL(MPI_Win_attach(win, mine, sizeof mine));
  CALL(MPI_Win_detach(win, mine));
  result = MPI_Win_detach(win, mine);
  CHECK((result != MPI_SUCCESS) == is_openmpi, "detach once more: class %d", error_class(result));
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  parts(0);
  parts(64);
  detach();
  return finish();
}
