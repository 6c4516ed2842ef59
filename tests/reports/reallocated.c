/* realloc of memory that a window was made over, when the window is gone: to more and to less, while another window
 * lives beside it.
 *
 * EXPECTED: the block keeps its content, and nobody else's memory changes (MPI-4.1 12.2.5: after MPI_Win_free the
 * memory is the program's again; realloc(3)).
 */
#include "report.h"

enum { small = 1 << 20, large = 3 << 20, rounds = 6 };

static unsigned char pattern(size_t at, int round) { return (unsigned char)(at / 97 + 31 * round + 7 * my_rank); }

static void fill(unsigned char* memory, size_t from, size_t to, int round) {
  for (size_t at = from; at < to; ++at) memory[at] = pattern(at, round);
}

static void check(const unsigned char* memory, size_t bytes, int round, const char* when) {
  for (size_t at = 0; at < bytes; ++at) {
    if (memory[at] == pattern(at, round)) continue;
    CHECK(0, "%s, round %d: byte %zu is %d, not %d", when, round, at, memory[at], pattern(at, round));
    return;
  }
}

static unsigned char* live_through(unsigned char* memory, size_t bytes, int round) {
  MPI_Win win;
  CALL(MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  fill(memory, 0, bytes, round);
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_free(&win));
  return memory;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  unsigned char *kept = malloc(small), *changed = malloc(small);
  MPI_Win win;
  CALL(MPI_Win_create(kept, small, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  fill(kept, 0, small, 99);
  for (int round = 0; round < rounds; ++round) {
    changed = live_through(changed, small, round);
    changed = realloc(changed, large);
    check(changed, small, round, "grown");
    fill(changed, small, large, round);
    MPI_Barrier(MPI_COMM_WORLD);
    check(kept, small, 99, "another window's");
    changed = live_through(changed, large, round);
    changed = realloc(changed, small);
    check(changed, small, round, "shrunk");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(kept, small, 99, "another window's");
  CALL(MPI_Win_free(&win));
  free(kept);
  free(changed);
  return finish();
}
