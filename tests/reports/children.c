/* Children that a rank forks while a window is over its memory, and after; by fork(), and by _Fork(), which calls no
 * handlers.
 *
 * RUN: as=fork -- fork
 * RUN: as=_Fork -- _Fork
 *
 * EXPECTED: what a child stores is its own, and what it reads is what was there when it was made (fork(2)). The window
 * is the parent's and goes on; the child calls no MPI (MPI-4.1 11.1.2 leaves processes of the program's own to the
 * system).
 */
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

enum { bytes = 1 << 20, place = bytes / 2 };

#pragma weak _Fork
extern pid_t _Fork(void);

static int uses_fork_alone;

static void make_a_child(char* memory, const char* when) {
  memory[place] = 3;
  memory[place + 1] = 0;
  int tell[2], status = 0;
  if (pipe(tell) != 0) return;
  const pid_t child = uses_fork_alone ? _Fork() : fork();
  if (child == 0) {
    /* Waits until the parent has stored something else. */
    char unused;
    const int begun = read(tell[0], &unused, 1) == 1;
    const int sees_own = memory[place] == 3 && memory[0] == 1;
    memory[place + 1] = 99;
    _exit(begun && sees_own ? 0 : 1);
  }
  memory[place] = 4;
  CHECK(write(tell[1], "", 1) == 1, "no pipe");
  waitpid(child, &status, 0);
  close(tell[0]);
  close(tell[1]);
  CHECK(memory[place + 1] == 0, "%s, the child's store is in the parent: %d", when, memory[place + 1]);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, the child sees the parent's store, or ended with status %d",
        when, status);
}

static void check_window(MPI_Win win, const char* memory) {
  const int peer = 1 - my_rank;
  const char value = (char)(20 + my_rank);
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win));
  CALL(MPI_Put(&value, 1, MPI_CHAR, peer, 77, 1, MPI_CHAR, win));
  CALL(MPI_Win_unlock(peer, win));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(memory[77] == 20 + peer, "the put after the child: %d", memory[77]);
}

int main(int argc, char** argv) {
  uses_fork_alone = told(argc, argv, "_Fork");
  begin(&argc, &argv);
  if (uses_fork_alone && _Fork == NULL) skip("a libc with _Fork (glibc 2.34)");
  char* const memory = malloc(bytes);
  memset(memory, 1, bytes);
  MPI_Win win;
  CALL(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  make_a_child(memory, "under a window");
  MPI_Barrier(MPI_COMM_WORLD);
  check_window(win, memory);
  make_a_child(memory, "after a put");
  CALL(MPI_Win_free(&win));
  make_a_child(memory, "after MPI_Win_free");
  free(memory);
  return finish();
}
