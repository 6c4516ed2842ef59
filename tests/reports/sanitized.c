/* Programs that are built with a sanitizer, whose runtime has to come first among the libraries.
 *
 * RUN: as=address flags=-fsanitize=address
 * RUN: as=undefined flags=-fsanitize=undefined flags=-fno-sanitize-recover
 * RUN: as=thread flags=-fsanitize=thread set=PMIX_MCA_gds=hash set=UCX_MEM_EVENTS=n
 * RUN: as=clang_address compiler=clang flags=-fsanitize=address flags=-shared-libasan
 * RUN: as=clang_address_static compiler=clang flags=-fsanitize=address
 * RUN: as=clang_undefined compiler=clang flags=-fsanitize=undefined flags=-fno-sanitize-recover=all
 * RUN: as=clang_thread compiler=clang flags=-fsanitize=thread set=PMIX_MCA_gds=hash
 *
 * EXPECTED: the program starts and its windows work as they do without (the sanitizers' own manuals; no clause of MPI).
 * Leaks of libraries are not looked for. UCX's hooks for memory that a thread gives back do not go with gcc's thread
 * sanitizer.
 */
#include "report.h"

enum { items = 5000 };

/* The sanitizers ask the program for their options. Libraries are built without them, and leak. */
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "detect_leaks=0"; }

const char* __tsan_default_options(void);
const char* __tsan_default_options(void) { return "ignore_noninstrumented_modules=1"; }

static void use(MPI_Win win, long* memory) {
  const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
  long* const values = malloc(items * sizeof *values);
  long* const got = calloc(items, sizeof *got);
  for (int i = 0; i < items; ++i) {
    memory[i] = i;
    values[i] = my_rank + 1;
  }
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Accumulate(values, items, MPI_LONG, next, 0, items, MPI_LONG, MPI_SUM, win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Get(got, items, MPI_LONG, next, 0, items, MPI_LONG, win));
  CALL(MPI_Win_fence(0, win));
  for (int i = 0; i < items; ++i) {
    CHECK(memory[i] == i + before + 1, "item %d is %ld", i, memory[i]);
    CHECK(got[i] == i + my_rank + 1, "item %d of the next is %ld", i, got[i]);
  }
  free(values);
  free(got);
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long *allocated, *own = malloc(items * sizeof *own), *shared;
  MPI_Win win;
  CALL(MPI_Win_allocate(items * sizeof *allocated, sizeof *allocated, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
  use(win, allocated);
  CALL(MPI_Win_create(own, items * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  use(win, own);
  free(own);
  CALL(MPI_Alloc_mem(items * sizeof *shared, MPI_INFO_NULL, &shared));
  CALL(MPI_Win_create(shared, items * sizeof *shared, sizeof *shared, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  use(win, shared);
  MPI_Free_mem(shared);
  return finish();
}
