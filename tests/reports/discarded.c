/* madvise(MADV_DONTNEED) on memory of the program's own that a window is, or was, made over: allocators clear memory
 * so.
 *
 * EXPECTED: private memory reads as zeros afterwards (madvise(2)), under a window, by its owner and by others, and
 * after it; the memory around it stays as it was.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

enum { pages = 64, first = 10, discarded = 5 };

static size_t page;

static void discard(char* memory, const char* when) {
  memset(memory, 9, pages * page);
  CHECK(madvise(memory + first * page, discarded * page, MADV_DONTNEED) == 0, "madvise fails");
  for (size_t at = 0; at < pages * page; at += page / 2) {
    const int expected = at >= first * page && at < (first + discarded) * page ? 0 : 9;
    CHECK(memory[at] == expected, "%s, byte %zu is %d, not %d", when, at, memory[at], expected);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  page = (size_t)getpagesize();
  char* const memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 1, pages * page);
  MPI_Win win;
  CALL(MPI_Win_create(memory, (MPI_Aint)(pages * page), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_lock_all(0, win));
  discard(memory, "under a window");
  CALL(MPI_Win_sync(win));
  MPI_Barrier(MPI_COMM_WORLD);
  const int peer = 1 - my_rank;
  char got[3] = {1, 1, 1}, value = 55;
  for (int i = 0; i < 3; ++i)
    CALL(MPI_Get(&got[i], 1, MPI_CHAR, peer, (MPI_Aint)((first + i * discarded - 1) * page), 1, MPI_CHAR, win));
  CALL(MPI_Win_flush(peer, win));
  CHECK(got[0] == 9 && got[1] == 0 && got[2] == 9, "the other rank's are %d %d %d", got[0], got[1], got[2]);
  CALL(MPI_Put(&value, 1, MPI_CHAR, peer, (MPI_Aint)((first + 1) * page), 1, MPI_CHAR, win));
  CALL(MPI_Win_flush(peer, win));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(memory[(first + 1) * page] == 55, "a put to a page that was discarded: %d", memory[(first + 1) * page]);
  CALL(MPI_Win_unlock_all(win));
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_free(&win));
  discard(memory, "after MPI_Win_free");
  munmap(memory, pages * page);
  return finish();
}
