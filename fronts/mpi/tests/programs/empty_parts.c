/* BARE
 * The part of a rank that asks for 0 bytes, and a detach of what was never attached: what libraries make of them. This
 * program passes without Farsum as it does with it. */
#include "check.h"

static int is_open_mpi(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return strncmp(version, "Open MPI", 8) == 0;
}

/* Rank 0 has bytes. In Open MPI 4.1 an empty part of MPI_Win_allocate has whatever address was in its memory. */
static void part(int flavor, int noncontiguous) {
  const int rank = my_rank(MPI_COMM_WORLD);
  const int has_address = is_open_mpi() && !noncontiguous;
  const int by_chance = is_open_mpi() && flavor == MPI_WIN_FLAVOR_ALLOCATE && rank != 0;
  char* memory = (char*)1;
  void* base = NULL;
  int flag = 0;
  MPI_Win win;
  MPI_Info info;
  MPI_Info_create(&info);
  if (noncontiguous) MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (flavor == MPI_WIN_FLAVOR_SHARED) {
    CALL(MPI_Win_allocate_shared(rank == 0 ? 64 : 0, 1, info, MPI_COMM_WORLD, &memory, &win));
  } else {
    CALL(MPI_Win_allocate(rank == 0 ? 64 : 0, 1, info, MPI_COMM_WORLD, &memory, &win));
  }
  MPI_Info_free(&info);
  CALL(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
  CHECK(flag && base == memory, "the base is %p, the part %p", base, (void*)memory);
  CHECK(by_chance || (memory != NULL) == (rank == 0 || has_address), "flavour %d: the part is at %p", flavor,
        (void*)memory);
  if (flavor == MPI_WIN_FLAVOR_SHARED) {
    for (int other = 0; other < ranks_of(MPI_COMM_WORLD); ++other) {
      MPI_Aint bytes = -1;
      int unit = 0;
      char* there = (char*)1;
      CALL(MPI_Win_shared_query(win, other, &bytes, &unit, &there));
      CHECK((there != NULL) == (other == 0 || has_address), "the part of %d is at %p", other, (void*)there);
      CHECK(other == 0 || bytes == 0, "the part of %d has %ld bytes", other, (long)bytes);
      CHECK(other != rank || there == memory, "the own part is at %p, not %p", (void*)there, (void*)memory);
    }
  }
  MPI_Win_free(&win);
}

static void memory_without_bytes(void) {
  char* memory = (char*)1;
  CALL(MPI_Alloc_mem(0, MPI_INFO_NULL, &memory));
  CHECK((memory == NULL) == is_open_mpi(), "memory of 0 bytes is at %p", (void*)memory);
  CALL(MPI_Free_mem(memory));
}

static void detaching(void) {
  char memory[64];
  MPI_Win win;
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CHECK((MPI_Win_detach(win, memory) == MPI_SUCCESS) == !is_open_mpi(), "a detach of what was never attached");
  CALL(MPI_Win_attach(win, memory, sizeof memory));
  CALL(MPI_Win_detach(win, memory));
  CHECK((MPI_Win_detach(win, memory) == MPI_SUCCESS) == !is_open_mpi(), "a detach of what was detached");
  CHECK(MPI_Win_detach(win, NULL) != MPI_SUCCESS, "a detach of no address");
  MPI_Win_free(&win);
  char* part_of = NULL;
  CALL(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part_of, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CHECK(MPI_Win_attach(win, memory, sizeof memory) != MPI_SUCCESS, "an attach to an allocated window");
  CHECK(MPI_Win_detach(win, part_of) != MPI_SUCCESS, "a detach from an allocated window");
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  part(MPI_WIN_FLAVOR_ALLOCATE, 0);
  part(MPI_WIN_FLAVOR_SHARED, 0);
  part(MPI_WIN_FLAVOR_SHARED, 1);
  memory_without_bytes();
  detaching();
  return finish();
}
