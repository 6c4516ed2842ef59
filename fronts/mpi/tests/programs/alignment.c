/* RANKS: 1 3
 * mpi_minimum_memory_alignment is honoured by MPI_Alloc_mem and by windows that allocate, each rank's own, for powers
 * of two up to 2 MiB, and told by the window's info; what it cannot be is ignored, for it is a hint. */
#include <stdint.h>

#include "check.h"

static const char* const key = "mpi_minimum_memory_alignment";

static int is_multiple(const void* address, size_t of) { return (uintptr_t)address % of == 0; }

static MPI_Info asking(const char* value, int noncontiguous) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  if (noncontiguous) MPI_Info_set(info, "alloc_shared_noncontig", "true");
  return info;
}

/* What the window says of the key; "" for nothing. */
static const char* told(MPI_Win win) {
  static char value[MPI_MAX_INFO_VAL + 1];
  int flag = 0;
  MPI_Info info;
  value[0] = '\0';
  CALL(MPI_Win_get_info(win, &info));
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
  MPI_Info_free(&info);
  return flag ? value : "";
}

static void alignment(size_t wish, int round) {
  const int rank = my_rank(MPI_COMM_WORLD);
  const size_t mine = rank == 0 ? wish : 64; /* rank 0 asks for more than the others */
  char text[32];
  char *filler = NULL, *part = NULL, *shared = NULL, *memory = NULL, *large = NULL;
  MPI_Win between, win, win_shared;
  snprintf(text, sizeof text, "%zu", mine);
  MPI_Info info = asking(text, 1);
  CALL(MPI_Win_allocate(100 + 48 * round, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &filler, &between));
  CALL(MPI_Win_allocate(300 + round, 1, info, MPI_COMM_WORLD, &part, &win));
  CALL(MPI_Win_allocate_shared(80 + round, 1, info, MPI_COMM_WORLD, &shared, &win_shared));
  CALL(MPI_Alloc_mem(200 + round, info, &memory));
  CALL(MPI_Alloc_mem(100000 + round, info, &large));
  CHECK(is_multiple(part, mine), "%zu: the part is at %p", mine, (void*)part);
  CHECK(is_multiple(shared, mine), "%zu: the shared part is at %p", mine, (void*)shared);
  CHECK(is_multiple(memory, mine), "%zu: memory is at %p", mine, (void*)memory);
  CHECK(is_multiple(large, mine), "%zu: large memory is at %p", mine, (void*)large);
  CHECK(strcmp(told(win), text) == 0, "%s was asked for, the window tells '%s'", text, told(win));
  CHECK(strcmp(told(win_shared), text) == 0, "%s was asked for, the shared one tells '%s'", text, told(win_shared));
  CHECK(strcmp(told(between), "64") == 0, "a window that nothing was asked of tells '%s'", told(between));
  memset(part, rank, 300);
  memset(shared, rank, 80);
  memset(memory, rank, 200);
  memset(large, rank, 100000);
  CALL(MPI_Free_mem(large));
  CALL(MPI_Free_mem(memory));
  MPI_Info_free(&info);
  CALL(MPI_Win_free(&win_shared));
  CALL(MPI_Win_free(&win));
  CALL(MPI_Win_free(&between));
}

static void no_alignment(const char* value) {
  char *part = NULL, *memory = NULL;
  MPI_Win win;
  MPI_Info info = asking(value, 0);
  CALL(MPI_Win_allocate(300, 1, info, MPI_COMM_WORLD, &part, &win));
  CHECK(strcmp(told(win), "64") == 0 && is_multiple(part, 64), "'%s' was asked for, the window tells '%s'", value,
        told(win));
  CALL(MPI_Alloc_mem(300, info, &memory));
  CALL(MPI_Free_mem(memory));
  CALL(MPI_Win_free(&win));
  MPI_Info_free(&info);
}

/* Memory stays where it is, whatever is asked later; and contiguous parts are where the part before them ends. */
static void set_later_and_contiguous(void) {
  char* part = NULL;
  MPI_Win win;
  MPI_Info info = asking("4096", 0);
  CALL(MPI_Win_allocate(300, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win));
  CALL(MPI_Win_set_info(win, info));
  CHECK(strcmp(told(win), "64") == 0, "the window tells '%s'", told(win));
  CALL(MPI_Win_free(&win));
  CALL(MPI_Win_allocate_shared(13, 1, info, MPI_COMM_WORLD, &part, &win));
  CHECK(strcmp(told(win), "") == 0, "the contiguous window tells '%s'", told(win));
  CALL(MPI_Win_free(&win));
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int round = 0; round < 3; ++round) {
    for (size_t wish = 1; wish <= (size_t)2 << 20; wish *= 2) alignment(wish, round);
  }
  no_alignment("100");
  no_alignment("4194304");
  no_alignment("0");
  no_alignment("-64");
  no_alignment("64 bytes");
  set_later_and_contiguous();
  return finish();
}
