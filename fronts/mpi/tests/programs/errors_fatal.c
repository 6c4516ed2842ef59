/* OPTIONS: --expect-failure --limit 20 --say "MPI_Put on window 'inbox'" --say-not inet_pton --say-not "before
 * MPI_Finalize" The default handler ends the job: the sentence is said, by the library's words for the code as well, or
 * these are of the class; not of another error. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void* memory = NULL;
  MPI_Win win;
  int word = 0;
  CALL(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_set_name(win, "inbox"));
  CALL(MPI_Win_fence(0, win));
  if (my_rank(MPI_COMM_WORLD) == 0) MPI_Put(&word, 1, MPI_INT, 1, 1000, 1, MPI_INT, win);
  CALL(MPI_Win_fence(0, win));
  return finish();
}
