/* A limit of the address room (ulimit -v), as batch systems set one: the program's own large allocation beside its
 * windows.
 *
 * RUN: as=8G limit=as:8G -- 5000
 * RUN: as=small limit=as:3G -- 500
 * RUN: as=tiny limit=as:400M libraries=mpich*,openmpi* -- 20
 * RUN: as=unlimited -- 5000
 * RUN: as=tall_stack limit=stack:unlimited -- 1000
 *
 * EXPECTED: malloc gives the program what its limit leaves: libraries need some hundred megabytes of it (getrlimit(2),
 * RLIMIT_AS; MPI-4.1 has no word of it), and windows of a few pages are made. With an unlimited stack the kernel maps
 * from elsewhere.
 */
#include "report.h"

static void use_a_window(void) {
  enum { items = 1000 };
  const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
  long *memory, values[items];
  MPI_Win win;
  CALL(MPI_Win_allocate(sizeof values, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  for (int i = 0; i < items; ++i) values[i] = 1000L * my_rank + i;
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(values, items, MPI_LONG, next, 0, items, MPI_LONG, win));
  CALL(MPI_Win_fence(0, win));
  for (int i = 0; i < items; ++i) CHECK(memory[i] == 1000L * before + i, "item %d is %ld", i, memory[i]);
  CALL(MPI_Win_free(&win));
}

static void allocate(size_t bytes, const char* when) {
  char* volatile memory = malloc(bytes);
  CHECK(memory != NULL, "malloc of %zu MB %s fails", bytes >> 20, when);
  if (memory != NULL) memory[bytes / 2] = 1;
  free(memory);
}

int main(int argc, char** argv) {
  const size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 100) << 20;
  begin(&argc, &argv);
  allocate(bytes, "after MPI_Init");
  use_a_window();
  allocate(bytes, "after the first window");
  for (int i = 0; i < 20; ++i) use_a_window();
  allocate(bytes, "after twenty more");
  return finish();
}
