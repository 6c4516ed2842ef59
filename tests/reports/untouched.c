/* A window over a large range of which nearly nothing is ever touched, or which is only read.
 *
 * RUN: as=never -- never
 * RUN: as=read -- read
 *
 * EXPECTED: a page that nobody has written takes no memory (MPI-4.1 12.2.1: the window exposes memory that is there; it
 * asks for none): what is resident grows by what was touched. Seconds are a note.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

enum { room_megabytes = 1500, most_megabytes = 100 };

static long resident_megabytes(void) {
  long size = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  fclose(file);
  return resident * getpagesize() >> 20;
}

static long read_all(const char* memory, size_t bytes) {
  long sum = 0;
  for (size_t at = 0; at < bytes; at += (size_t)getpagesize()) sum += ((const volatile char*)memory)[at];
  return sum;
}

static void check_resident(long before, const char* when) {
  const long grown = resident_megabytes() - before;
  CHECK(grown < most_megabytes, "%s, %ld MB more are resident", when, grown);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const size_t bytes = (size_t)room_megabytes << 20;
  const int owns = my_rank == 0;
  char* const memory =
      owns ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : NULL;
  if (owns && told(argc, argv, "read")) {
    /* With a huge page of zeros, reads cost the kernel nothing, and without this they are no different. */
    CHECK(read_all(memory, bytes) == 0, "not zeros");
  }
  const long before = resident_megabytes();
  MPI_Win win;
  const double began = MPI_Wtime();
  CALL(MPI_Win_create(memory, owns ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  const double made = MPI_Wtime();
  if (owns) check_resident(before, "with the window");
  const long value = 5;
  if (my_rank == 1) {
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CALL(MPI_Put(&value, 1, MPI_LONG, 0, (MPI_Aint)bytes / 2, 1, MPI_LONG, win));
    CALL(MPI_Win_unlock(0, win));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double used = MPI_Wtime();
  CALL(MPI_Win_free(&win));
  const double freed = MPI_Wtime();
  if (owns) {
    CHECK(*(long*)(memory + bytes / 2) == value, "the put: %ld", *(long*)(memory + bytes / 2));
    check_resident(before, "after the window");
    munmap(memory, bytes);
  }
  NOTE("made in %.3f s, freed in %.3f s", made - began, freed - used);
  return finish();
}
