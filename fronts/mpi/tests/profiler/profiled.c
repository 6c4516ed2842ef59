/* A profiler that is linked into the program, or that the user preloads, sees each call once, and each call behind it
 * is Farsum's: FARSUM_MPI_STRICT ends the program otherwise. Farsum begins in MPI_Init, also where that is wrapped. */
#include <dlfcn.h>
#include <link.h>

#include "../programs/check.h"

enum { rounds = 100, calls = 4 };

static int is_front(struct dl_phdr_info* object, size_t bytes, void* nothing) {
  (void)bytes;
  (void)nothing;
  return strstr(object->dlpi_name, "libfarsum_front_") != NULL;
}

/* Whether there is one. */
static int check_counts(const char* name) {
  static const int expected[calls] = {1, 1, rounds, 1};
  int counts[calls];
  void (*read_counts)(int*) = NULL;
  void* const found = dlsym(RTLD_DEFAULT, name);
  memcpy(&read_counts, &found, sizeof found);
  if (read_counts == NULL) return 0;
  read_counts(counts);
  for (int i = 0; i < calls; ++i) CHECK(counts[i] == -1 || counts[i] == expected[i], "%s: %d", name, counts[i]);
  return 1;
}

/* Argument: how many profilers there are, one behind the other. */
int main(int argc, char** argv) {
  const int profilers = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Init(&argc, &argv);
  CHECK(dl_iterate_phdr(is_front, NULL) != 0, "Farsum did not begin");
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD), right = (rank + 1) % size;
  const long one = 1;
  long* memory = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(64, sizeof one, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  memory[0] = memory[1] = 0;
  CALL(MPI_Win_fence(0, win));
  for (int i = 0; i < rounds; ++i) CALL(MPI_Accumulate(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, MPI_SUM, win));
  CALL(MPI_Put(&one, 1, MPI_LONG, right, 1, 1, MPI_LONG, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(memory[0] == rounds && memory[1] == 1, "got %ld and %ld", memory[0], memory[1]);
  CALL(MPI_Win_free(&win));
  const int found = check_counts("profiler_counts") + check_counts("behind_counts");
  CHECK(found == profilers, "%d profilers", found);
  return finish();
}
