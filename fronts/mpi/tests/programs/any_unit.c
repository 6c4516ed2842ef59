/* RANKS: 3
 * BARE
 * Displacement units of 0 bytes and fewer, as codes give them for an empty vector: what libraries make of them. This
 * program passes without Farsum as it does with it. */
#include "check.h"

static int is_open_mpi(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return strncmp(version, "Open MPI", 8) == 0;
}

static int class_of(int result) {
  int class = MPI_SUCCESS;
  if (result != MPI_SUCCESS) MPI_Error_class(result, &class);
  return class;
}

/* Rank 0 has the memory. Ranks but `whose` have a unit of 8; -1: all have this one. */
static void shared_window(int unit, int whose, MPI_Aint bytes) {
  const int rank = my_rank(MPI_COMM_WORLD), last = ranks_of(MPI_COMM_WORLD) - 1;
  const int is_taken = is_open_mpi() || (whose >= 0 && rank != whose && unit > 0);
  long* memory = NULL;
  MPI_Win win = MPI_WIN_NULL;
  const int made = MPI_Win_allocate_shared(rank == 0 ? bytes : 0, whose < 0 || whose == rank ? unit : 8, MPI_INFO_NULL,
                                           MPI_COMM_WORLD, &memory, &win);
  if (!is_taken) {
    CHECK(made != MPI_SUCCESS, "unit %d of rank %d, %ld bytes", unit, whose, (long)bytes);
    return;
  }
  CHECK(made == MPI_SUCCESS, "unit %d of rank %d, %ld bytes: class %d", unit, whose, (long)bytes, class_of(made));
  if (made != MPI_SUCCESS) return;
  for (int other = 0; other <= last; ++other) {
    MPI_Aint size = -1;
    int told = 1;
    long* there = NULL;
    CALL(MPI_Win_shared_query(win, other, &size, &told, &there));
    CHECK(size == (other == 0 ? bytes : 0), "the part of %d has %ld bytes", other, (long)size);
    CHECK(told == (whose < 0 || whose == other ? unit : 8), "the unit of %d is %d", other, told);
    if (other == 0 && bytes != 0) {
      if (rank == last) there[2] = 7;
      MPI_Win_fence(0, win);
      CHECK(there[2] == 7, "what the last rank has stored: %ld", there[2]);
    }
  }
  /* Each displacement is where the part begins. */
  if (unit == 0 && whose <= 0 && bytes != 0) {
    const long value = 5;
    MPI_Win_fence(0, win);
    if (rank == last) CALL(MPI_Put(&value, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win));
    MPI_Win_fence(0, win);
    CHECK(rank != 0 || memory[0] == 5, "what was put: %ld", memory[0]);
  }
  MPI_Win_free(&win);
}

static void other_windows(int unit) {
  long own[4], *memory = NULL;
  MPI_Win win = MPI_WIN_NULL;
  CHECK(class_of(MPI_Win_create(own, sizeof own, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win)) != MPI_SUCCESS,
        "created, unit %d", unit);
  CHECK(class_of(MPI_Win_allocate(32, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win)) != MPI_SUCCESS,
        "allocated, unit %d", unit);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int unit = 0; unit >= -8; unit -= 8) {
    shared_window(unit, -1, 0);
    shared_window(unit, -1, 80);
    other_windows(unit);
  }
  /* MPICH's ranks do not agree before they make it: alone, those with a right unit would wait. */
  if (is_open_mpi()) {
    shared_window(0, 0, 0);
    shared_window(0, 0, 80);
  }
  return finish();
}
