/* Locks that a program makes of one-sided operations and hands from rank to rank, on a node with more ranks than
 * processors: who waits polls through calls that do not wait.
 *
 * RUN: as=ticket ranks=2,4 -- ticket
 * RUN: as=queue ranks=2,4 -- queue
 *
 * EXPECTED: no update of what the lock guards is lost, and everybody's turn comes (MPI-4.1 12.7.1, 12.7.3: accumulates
 * on one location are atomic, and operations complete whatever their target does). Microseconds a hand-over are a note.
 */
#include "report.h"

enum {
  turns = 10,
  ticket = 0,
  serving = 1,
  guarded = 2,
  tail = 3,
  next_of_me = 4,
  is_blocked = 5,
  words = 6,
  nobody = -1
};

static MPI_Win win;

static long fetch(long operand, int rank, int word, MPI_Op op) {
  long result;
  CALL(MPI_Fetch_and_op(&operand, &result, MPI_LONG, rank, word, op, win));
  CALL(MPI_Win_flush(rank, win));
  return result;
}

/* Two plain operations that only the lock keeps together. */
static void add_one_under_the_lock(void) {
  long value;
  CALL(MPI_Get(&value, 1, MPI_LONG, 0, guarded, 1, MPI_LONG, win));
  CALL(MPI_Win_flush(0, win));
  ++value;
  CALL(MPI_Put(&value, 1, MPI_LONG, 0, guarded, 1, MPI_LONG, win));
  CALL(MPI_Win_flush(0, win));
}

static void take_turn_by_ticket(void) {
  const long mine = fetch(1, 0, ticket, MPI_SUM);
  while (fetch(0, 0, serving, MPI_NO_OP) != mine) {
  }
  add_one_under_the_lock();
  fetch(1, 0, serving, MPI_SUM);
}

/* The lock of Mellor-Crummey and Scott: each waits at a word of its own. */
static void take_turn_in_the_queue(void) {
  fetch(nobody, my_rank, next_of_me, MPI_REPLACE);
  fetch(1, my_rank, is_blocked, MPI_REPLACE);
  const long before = fetch(my_rank, 0, tail, MPI_REPLACE);
  if (before != nobody) {
    fetch(my_rank, (int)before, next_of_me, MPI_REPLACE);
    while (fetch(0, my_rank, is_blocked, MPI_NO_OP) != 0) {
    }
  }
  add_one_under_the_lock();
  const long me = my_rank, none = nobody;
  long found;
  CALL(MPI_Compare_and_swap(&none, &me, &found, MPI_LONG, 0, tail, win));
  CALL(MPI_Win_flush(0, win));
  if (found == me) return;
  long next;
  while ((next = fetch(0, my_rank, next_of_me, MPI_NO_OP)) == nobody) {
  }
  fetch(0, (int)next, is_blocked, MPI_REPLACE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int queues = told(argc, argv, "queue");
  long* memory;
  CALL(MPI_Win_allocate(words * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_lock_all(0, win));
  memset(memory, 0, words * sizeof *memory);
  memory[tail] = nobody;
  CALL(MPI_Win_sync(win));
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < turns; ++i) queues ? take_turn_in_the_queue() : take_turn_by_ticket();
  MPI_Barrier(MPI_COMM_WORLD);
  NOTE("%.1f us a hand-over", (MPI_Wtime() - began) / (turns * ranks) * 1e6);
  const long count = fetch(0, 0, guarded, MPI_NO_OP);
  CHECK(count == (long)turns * ranks, "%ld updates, not %d", count, turns * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Win_free(&win));
  return finish();
}
