/* The info key mpi_minimum_memory_alignment for MPI_Alloc_mem, MPI_Win_allocate and MPI_Win_allocate_shared; code that
 * was built for wide registers faults where it is not kept.
 *
 * RUN: ranks=2,3
 * RUN: as=kept with=farsum on=node -- kept
 *
 * EXPECTED: memory that begins at a multiple of the value (MPI-4.1 9.2, 12.2.2, 12.2.3). It is a hint; but what the
 * window's info reports is what is in use (12.2.7), so a value that is reported is kept. As `kept`, under Farsum alone:
 * powers of two up to 2 MiB are reported, too.
 */
#include "report.h"

enum { values = 4, repeats = 4 };

static const long aligned_to[values] = {64, 256, 4096, 2L << 20};

static int must_be_reported;

static MPI_Info info_of(long alignment) {
  char text[32];
  snprintf(text, sizeof text, "%ld", alignment);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_minimum_memory_alignment", text);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  return info;
}

static void check_window(MPI_Win win, const char* memory, long alignment, const char* what) {
  MPI_Info info;
  char text[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  CALL(MPI_Win_get_info(win, &info));
  MPI_Info_get(info, "mpi_minimum_memory_alignment", MPI_MAX_INFO_VAL, text, &is_there);
  MPI_Info_free(&info);
  CHECK((uintptr_t)memory % alignment == 0, "%s for %ld is at %p", what, alignment, (const void*)memory);
  if (is_there)
    CHECK((uintptr_t)memory % atol(text) == 0, "%s reports %s and is at %p", what, text, (const void*)memory);
  if (must_be_reported) CHECK(is_there && atol(text) >= alignment, "%s for %ld reports '%s'", what, alignment, text);
}

static void check(long alignment, int repeat, int is_one_node) {
  char *between, *memory, *allocated, *shared;
  MPI_Win win_between, win, win_shared;
  MPI_Info info = info_of(alignment);
  /* Moves what comes next to another place each time. */
  CALL(MPI_Win_allocate(100 + 48 * repeat, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &between, &win_between));
  CALL(MPI_Alloc_mem(200 + repeat, info, &memory));
  CHECK((uintptr_t)memory % alignment == 0, "MPI_Alloc_mem for %ld is at %p", alignment, (void*)memory);
  CALL(MPI_Win_allocate(300 + repeat, 1, info, MPI_COMM_WORLD, &allocated, &win));
  check_window(win, allocated, alignment, "MPI_Win_allocate");
  if (is_one_node) {
    CALL(MPI_Win_allocate_shared(80 + repeat, 1, info, MPI_COMM_WORLD, &shared, &win_shared));
    check_window(win_shared, shared, alignment, "MPI_Win_allocate_shared");
    CALL(MPI_Win_free(&win_shared));
  }
  MPI_Info_free(&info);
  CALL(MPI_Win_free(&win));
  MPI_Free_mem(memory);
  CALL(MPI_Win_free(&win_between));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  must_be_reported = told(argc, argv, "kept");
  MPI_Comm node;
  int ranks_here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &ranks_here);
  MPI_Comm_free(&node);
  for (int i = 0; i < values; ++i)
    for (int repeat = 0; repeat < repeats; ++repeat) check(aligned_to[i], repeat, ranks_here == ranks);
  return finish();
}
