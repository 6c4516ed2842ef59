/* RANKS: 1 2
 * Windows tell of the kinds of memory that they support, as communicators do (MPI-4.1, section 12.4.3), and of what the
 * program asserts to use of these; what is not supported is not told. */
#include "check.h"

static const char* const kinds = "mpi_memory_alloc_kinds";
static const char* const asserted = "mpi_assert_memory_alloc_kinds";

/* "-": it has no such key. */
static const char* value_of(MPI_Info* info, const char* key, char* value) {
  int flag = 0;
  MPI_Info_get(*info, key, MPI_MAX_INFO_VAL, value, &flag);
  MPI_Info_free(info);
  return flag ? value : "-";
}

static const char* told(MPI_Win win, const char* key) {
  static char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  CALL(MPI_Win_get_info(win, &info));
  return value_of(&info, key, value);
}

static MPI_Info info_with(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  return info;
}

static void make(int flavor, MPI_Info info, MPI_Win* win) {
  static char own[64];
  char* memory;
  if (flavor == MPI_WIN_FLAVOR_CREATE) CALL(MPI_Win_create(own, 64, 1, info, MPI_COMM_WORLD, win));
  if (flavor == MPI_WIN_FLAVOR_ALLOCATE) CALL(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &memory, win));
  if (flavor == MPI_WIN_FLAVOR_SHARED) CALL(MPI_Win_allocate_shared(64, 1, info, MPI_COMM_WORLD, &memory, win));
  if (flavor == MPI_WIN_FLAVOR_DYNAMIC) CALL(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, win));
}

int main(int argc, char** argv) {
  const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC};
  char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  CALL(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
  const char* const of_world = value_of(&info, kinds, value);
  const int is_told = strcmp(of_world, "-") != 0;
  for (size_t i = 0; i < sizeof flavors / sizeof *flavors; ++i) {
    make(flavors[i], MPI_INFO_NULL, &win);
    CHECK(strcmp(told(win, kinds), of_world) == 0, "flavour %d tells '%s', the world '%s'", flavors[i],
          told(win, kinds), of_world);
    CHECK(strcmp(told(win, asserted), "-") == 0, "nothing was asserted, '%s' is told", told(win, asserted));
    MPI_Win_free(&win);

    info = info_with(asserted, "system,mpi:win_allocate");
    make(flavors[i], info, &win);
    MPI_Info_free(&info);
    CHECK(strcmp(told(win, asserted), is_told ? "system,mpi:win_allocate" : "-") == 0, "'%s' is told as asserted",
          told(win, asserted));
    CHECK(strcmp(told(win, kinds), of_world) == 0, "'%s' is told as supported", told(win, kinds));

    info = info_with(asserted, "system,no_such_kind");
    CALL(MPI_Win_set_info(win, info));
    MPI_Info_free(&info);
    CHECK(strcmp(told(win, asserted), is_told ? "system,mpi:win_allocate" : "-") == 0,
          "'%s' is told as asserted, which is not supported", told(win, asserted));

    info = info_with(asserted, "system");
    CALL(MPI_Win_set_info(win, info));
    MPI_Info_free(&info);
    CHECK(strcmp(told(win, asserted), is_told ? "system" : "-") == 0, "'%s' is told as asserted", told(win, asserted));
    MPI_Win_free(&win);
  }
  /* What a window supports is the library's to say. */
  info = info_with(kinds, "no_such_kind");
  make(MPI_WIN_FLAVOR_ALLOCATE, info, &win);
  MPI_Info_free(&info);
  CHECK(strcmp(told(win, kinds), of_world) == 0, "'%s' is told as supported", told(win, kinds));
  MPI_Win_free(&win);
  return finish();
}
