/* What many_lists.c and many_lists_threads.c have in common. */
#include "check.h"

enum { most_ranks = 16 };

/* Random numbers that are the same on all ranks. */
typedef struct draws {
  unsigned long state;
} draws;

static int draw(draws* drawn, int below) {
  drawn->state = drawn->state * 6364136223846793005UL + 1442695040888963407UL;
  return (int)((drawn->state >> 33) % (unsigned long)below);
}

/* Rounds of windows over `among` in random order, of which each fourth has random members only. */
static void use_lists(MPI_Comm among, draws* drawn, int lists) {
  const int rank = my_rank(among), ranks = ranks_of(among);
  for (int list = 0; list < lists; ++list) {
    int order[most_ranks];
    const int all = (1 << ranks) - 1, goes_first = draw(drawn, 2), drawn_members = 1 + draw(drawn, all);
    const int members = list % 4 == 3 ? drawn_members : all, made = list % 8 == 0 ? 2 : 1;
    for (int i = 0; i < ranks; ++i) {
      const int at = draw(drawn, i + 1);
      order[i] = order[at];
      order[at] = i;
    }
    MPI_Comm comm;
    MPI_Comm_split(among, members >> rank & 1 ? 1 : MPI_UNDEFINED, order[rank], &comm);
    if (comm == MPI_COMM_NULL) continue;
    const int me = my_rank(comm), size = ranks_of(comm);
    long* words[2];
    MPI_Win windows[2];
    for (int i = 0; i < made; ++i)
      CALL(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &words[i], &windows[i]));
    if (goes_first) MPI_Comm_free(&comm);
    for (int i = 0; i < made; ++i) {
      const long mine = 1000L * list + 10L * me + i;
      CALL(MPI_Win_fence(0, windows[i]));
      CALL(MPI_Put(&mine, 1, MPI_LONG, (me + 1) % size, 0, 1, MPI_LONG, windows[i]));
      CALL(MPI_Win_fence(0, windows[i]));
      CHECK(*words[i] == 1000L * list + 10L * ((me + size - 1) % size) + i, "list %d, window %d: %ld", list, i,
            *words[i]);
    }
    for (int i = 0; i < made; ++i) MPI_Win_free(&windows[i]);
    if (!goes_first) MPI_Comm_free(&comm);
  }
}
