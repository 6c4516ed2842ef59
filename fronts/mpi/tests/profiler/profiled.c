/* A profiler that is linked into the program, or that the user preloads, sees each call once, and each call behind it
 * is Farsum's: FARSUM_MPI_STRICT ends the program otherwise. */
#include <dlfcn.h>

#include "../programs/check.h"

enum { rounds = 100 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD), right = (rank + 1) % size;
  const long one = 1;
  long* memory = NULL;
  int counts[4] = {0};
  MPI_Win win;
  void (*read_counts)(int*) = NULL;
  void* found = dlsym(RTLD_DEFAULT, "profiler_counts");
  memcpy(&read_counts, &found, sizeof found);
  CHECK(read_counts != NULL, "there is no profiler");
  CALL(MPI_Win_allocate(64, sizeof one, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  memory[0] = memory[1] = 0;
  CALL(MPI_Win_fence(0, win));
  for (int i = 0; i < rounds; ++i) CALL(MPI_Accumulate(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, MPI_SUM, win));
  CALL(MPI_Put(&one, 1, MPI_LONG, right, 1, 1, MPI_LONG, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(memory[0] == rounds && memory[1] == 1, "got %ld and %ld", memory[0], memory[1]);
  CALL(MPI_Win_free(&win));
  if (read_counts != NULL) read_counts(counts);
  CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == rounds && counts[3] == 1, "counted %d, %d, %d and %d",
        counts[0], counts[1], counts[2], counts[3]);
  return finish();
}
