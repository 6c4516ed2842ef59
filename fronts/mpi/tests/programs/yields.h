/* What becomes of a program that calls and calls and never waits, where others want its processor. */
#ifndef FARSUM_MPI_TESTS_YIELDS_H
#define FARSUM_MPI_TESTS_YIELDS_H

#include "counted_yields.h"

enum { work_ns = 400000000 };

/* How often rank 0 gave its processor away while it worked; the others wait for it meanwhile. */
static int yields_of(void (*work)(MPI_Win win, long* word), MPI_Win win, long* word) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank(MPI_COMM_WORLD) == 0) {
    yields = 0;
    is_counted = 1;
    for (const long end = now_ns() + work_ns; now_ns() < end;) work(win, word);
    is_counted = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return yields;
}

static void update(MPI_Win win, long* word) {
  long one = 1, before = 0;
  CALL(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win));
  CALL(MPI_Win_flush(0, win));
  (void)word;
}

static void poll(MPI_Win win, long* word) {
  CALL(MPI_Win_sync(win));
  (void)*(volatile long*)word;
}

static void put(MPI_Win win, long* word) {
  CALL(MPI_Put(word, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
  CALL(MPI_Win_flush_all(win));
}

/* The most that any of the three kinds of work gave way. */
static int most_yields(void) {
  MPI_Win win;
  long* words;
  CALL(MPI_Win_allocate(2 * sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&words, &win));
  words[0] = words[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock_all(0, win));
  int most = 0;
  void (*const works[])(MPI_Win, long*) = {update, poll, put};
  for (int i = 0; i < 3; ++i) {
    const int here = yields_of(works[i], win, words);
    if (here > most) most = here;
  }
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Win_free(&win));
  return most;
}

#endif
