/* RANKS: 6
 * Takes seconds: hundreds of lists
 * Windows over hundreds of lists of ranks, each with a communicator of its own that goes before its window or after it.
 * All of them work, and what is kept of a list is not kept of each. */
#include <malloc.h>

#include "many_lists.inl"

static size_t allocated(void) { return mallinfo2().uordblks; }

int main(int argc, char** argv) {
  const int first_lists = 150, more_lists = 100;
  MPI_Init(&argc, &argv);
  draws drawn = {1};
  use_lists(MPI_COMM_WORLD, &drawn, first_lists);
  const size_t before = allocated();
  use_lists(MPI_COMM_WORLD, &drawn, more_lists);
  const size_t after = allocated();
  /* A list takes more than 3 kB while it is kept. */
  CHECK(after < before + 50000, "%ld bytes more for %d more lists", (long)(after - before), more_lists);
  return finish();
}
