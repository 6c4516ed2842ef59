/* MPI_Win_shared_query: the own part of every flavour but a dynamic one, and of a neighbour's what is mapped here
 * whole: allocated memory, that of MPI_Alloc_mem, and pages that were promoted. Before MPI 4.1 it is for shared windows
 * only. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "check.h"

enum { page_bytes = 4096 };
static int of_every_flavour;

static void query(MPI_Win win, void* base, MPI_Aint bytes, int unit, int is_mapped, const char* what) {
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (bytes != 0) *(long*)base = 4711 + rank;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int other = 0; other < size; ++other) {
    MPI_Aint there = -1;
    int its_unit = -1, error_class = MPI_SUCCESS;
    long* part = NULL;
    const int code = MPI_Win_shared_query(win, other, &there, &its_unit, &part);
    if (!of_every_flavour) {
      MPI_Error_class(code, &error_class);
      CHECK(error_class == MPI_ERR_RMA_FLAVOR, "%s: class %d", what, error_class);
      continue;
    }
    CALL(code);
    CHECK(its_unit == unit, "%s: the unit of %d is %d", what, other, its_unit);
    if (other == rank) {
      CHECK(there == bytes && part == base, "%s: the own part is at %p, %ld bytes", what, (void*)part, (long)there);
    } else if (is_mapped) {
      CHECK(there == bytes && part != NULL && *part == 4711 + other, "%s: the part of %d is at %p, %ld bytes", what,
            other, (void*)part, (long)there);
    } else {
      CHECK(there == 0 && part == NULL, "%s: the part of %d is at %p, %ld bytes", what, other, (void*)part,
            (long)there);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_free(&win));
}

static MPI_Win over(void* memory, MPI_Aint bytes) {
  MPI_Win win;
  CALL(MPI_Win_create(memory, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  return win;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int version = 0, subversion = 0, error_class = MPI_SUCCESS;
  MPI_Get_version(&version, &subversion);
  of_every_flavour = version > 4 || (version == 4 && subversion >= 1);
  void* memory = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(4000, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  query(win, memory, 4000, 8, 1, "an allocated window");
  CALL(MPI_Alloc_mem(5000, MPI_INFO_NULL, &memory));
  query(over(memory, 5000), memory, 5000, 8, 1, "MPI_Alloc_mem's");
  query(over((char*)memory + 8, 4000), (char*)memory + 8, 4000, 8, 1, "part of MPI_Alloc_mem's");
  CALL(MPI_Free_mem(memory));
  char* pages = mmap(NULL, 256 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  query(over(pages, 256 * page_bytes), pages, 256 * page_bytes, 8, 1, "pages");
  munmap(pages, 256 * page_bytes);
  static long words[8];
  query(over(words, sizeof words), words, sizeof words, 8, 0, "static memory");
  query(over(words, 0), words, 0, 8, 0, "no bytes");
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Aint there = 0;
  int unit = 0;
  MPI_Error_class(MPI_Win_shared_query(win, 0, &there, &unit, &memory), &error_class);
  CHECK(error_class == MPI_ERR_RMA_FLAVOR, "a dynamic window: class %d", error_class);
  CALL(MPI_Win_free(&win));
  return finish();
}
