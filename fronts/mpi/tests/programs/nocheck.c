/* RANKS: 2 4
 * MPI_MODE_NOCHECK takes nothing and waits for nobody: the lock that the assertion promises is in nobody's way is in
 * nobody's way. Errors stay errors, and a start uses up its post. */
#include "check.h"

static long* memory;
static MPI_Win win;
static int rank, size;

/* What a coarray program's event wait and event post do. The waiter looks by MPI_Win_sync, as it does, and must go on
 * driving both. */
static void an_event_is_posted_under_an_exclusive_lock(void) {
  *memory = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    volatile long* event = memory;
    CALL(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    while (*event < size - 1) {
      CALL(MPI_Win_sync(win));
      CALL(MPI_Win_flush(0, win));
    }
    CALL(MPI_Win_unlock_all(win));
  } else {
    const long one = 1;
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Win_unlock(0, win));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* All hold each target at once, though one has its lock; each finds its own epoch's operations done at unlock. */
static void a_held_lock_is_not_waited_for(void) {
  const long one = 1;
  *memory = 0;
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  if (rank == size - 1) CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  if (rank == size - 1) CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
  if (rank == size - 1) CALL(MPI_Win_flush(0, win)); /* the lock is held from here on */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != size - 1) {
    long seen = -1;
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Win_unlock(0, win));
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, win));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Get_accumulate(NULL, 0, MPI_LONG, &seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_NO_OP, win));
    CALL(MPI_Win_flush(0, win));
    CHECK(seen >= 3, "%ld of this rank's sums and the holder's are there", seen);
    CALL(MPI_Win_unlock(0, win));
    CALL(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Win_unlock_all(win));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) CALL(MPI_Win_unlock(0, win));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK(*memory == 3 * (size - 1) + 1, "%ld sums are there", *memory);
  MPI_Barrier(MPI_COMM_WORLD);
  /* And no lock was left behind, or given back for somebody else. */
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
  CALL(MPI_Win_unlock(0, win));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK(*memory == 4 * (size - 1) + 2, "%ld sums are there after all", *memory);
}

static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  return error_class;
}
#define REFUSED(expression)                                                                \
  do {                                                                                     \
    const int error_class = class_of(expression);                                          \
    CHECK(error_class == MPI_ERR_RMA_SYNC, "class %d, not MPI_ERR_RMA_SYNC", error_class); \
  } while (0)

static void epochs_still_exclude_each_other(void) {
  const long one = 1;
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  REFUSED(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_lock_all(0, win));
  REFUSED(MPI_Win_start(all, MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_fence(0, win));
  REFUSED(MPI_Win_unlock_all(win));
  REFUSED(MPI_Put(&one, 1, MPI_LONG, size - 1, 1, 1, MPI_LONG, win));
  CALL(MPI_Put(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
  CALL(MPI_Win_unlock(0, win));
  REFUSED(MPI_Win_unlock(0, win));
  REFUSED(MPI_Put(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
  CALL(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
  REFUSED(MPI_Win_unlock(0, win));
  REFUSED(MPI_Win_fence(0, win));
  REFUSED(MPI_Win_free(&win));
  CALL(MPI_Win_unlock_all(win));
  REFUSED(MPI_Win_unlock_all(win));
  CHECK(class_of(MPI_Win_lock(4711, 0, MPI_MODE_NOCHECK, win)) == MPI_ERR_LOCKTYPE, "an unknown lock");
  CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, size, MPI_MODE_NOCHECK, win)) == MPI_ERR_RANK, "a rank outside");
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, MPI_MODE_NOCHECK, win));
  MPI_Group_free(&all);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 posts to the others, round by round. Where both say NOCHECK a barrier stands for the post; the rounds between
 * must wait for their own posts, for the value that the post lets them read. */
static void a_start_uses_its_post_up(void) {
  MPI_Group all, owner, others;
  const int zero = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &zero, &owner);
  MPI_Group_excl(all, 1, &zero, &others);
  for (int round = 0; round < 50; ++round) {
    const int assertion = round % 3 == 0 ? MPI_MODE_NOCHECK : 0;
    if (rank == 0) {
      *memory = round;
      CALL(MPI_Win_post(others, assertion, win));
      if (assertion != 0) MPI_Barrier(MPI_COMM_WORLD);
      CALL(MPI_Win_wait(win));
    } else {
      long seen = -1;
      if (assertion != 0) MPI_Barrier(MPI_COMM_WORLD);
      CALL(MPI_Win_start(owner, assertion, win));
      CALL(MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
      CALL(MPI_Win_complete(win));
      CHECK(seen == round, "round %d reads %ld", round, seen);
    }
  }
  MPI_Group_free(&others);
  MPI_Group_free(&owner);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  rank = my_rank(MPI_COMM_WORLD);
  size = ranks_of(MPI_COMM_WORLD);
  CALL(MPI_Win_allocate(2 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  an_event_is_posted_under_an_exclusive_lock();
  a_held_lock_is_not_waited_for();
  epochs_still_exclude_each_other();
  a_start_uses_its_post_up();
  CALL(MPI_Win_free(&win));
  return finish();
}
