/* Legal programs that hang where a wait in the one-sided layer stops the library, or the other way round. */
#include <time.h>

#include "check.h"

enum { words = 1 << 20 }; /* past every library's eager limit */

static int* buffer;

/* Rank 0 starts a send and waits for a lock that rank 1 gives up only after its receive. */
static void send_then_lock(MPI_Win win, int rank) {
  MPI_Request request;
  if (rank == 1) CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    CALL(MPI_Isend(buffer, words, MPI_INT, 1, 1, MPI_COMM_WORLD, &request));
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    CALL(MPI_Win_unlock(1, win));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    CALL(MPI_Recv(buffer, words, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Win_unlock(1, win));
  }
}

static void send_then_fence(MPI_Win win, int rank) {
  MPI_Request request;
  if (rank == 0) {
    CALL(MPI_Isend(buffer, words, MPI_INT, 1, 2, MPI_COMM_WORLD, &request));
    CALL(MPI_Win_fence(0, win));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    if (rank == 1) CALL(MPI_Recv(buffer, words, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Win_fence(0, win));
  }
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

static void send_then_wait(MPI_Win win, int rank) {
  MPI_Request request;
  MPI_Group world, other;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int peer = 1 - rank;
  if (rank < 2) MPI_Group_incl(world, 1, &peer, &other);
  if (rank == 0) {
    CALL(MPI_Isend(buffer, words, MPI_INT, 1, 3, MPI_COMM_WORLD, &request));
    CALL(MPI_Win_post(other, 0, win));
    CALL(MPI_Win_wait(win));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    CALL(MPI_Recv(buffer, words, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Win_start(other, 0, win));
    CALL(MPI_Win_complete(win));
  }
  if (rank < 2) MPI_Group_free(&other);
  MPI_Group_free(&world);
}

/* Rank 0 polls a word that rank 1 sets after a send which needs rank 0's library. */
static void poll_a_word(MPI_Win win, int rank) {
  MPI_Request request;
  int word = 0;
  const int one = 1;
  CALL(MPI_Win_lock_all(0, win));
  if (rank == 0) {
    CALL(MPI_Irecv(buffer, words, MPI_INT, 1, 4, MPI_COMM_WORLD, &request));
    while (word == 0) {
      CALL(MPI_Fetch_and_op(NULL, &word, MPI_INT, 0, 3, MPI_NO_OP, win));
      CALL(MPI_Win_flush(0, win));
    }
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    CALL(MPI_Send(buffer, words, MPI_INT, 0, 4, MPI_COMM_WORLD));
    CALL(MPI_Accumulate(&one, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_REPLACE, win));
    CALL(MPI_Win_flush(0, win));
  }
  CALL(MPI_Win_unlock_all(win));
}

/* The same by loads of its own memory, asleep between them. */
static void look_at_a_word_now_and_then(MPI_Win win, int rank, const volatile int* memory) {
  const struct timespec pause = {0, 1000000};
  MPI_Request request;
  const int one = 1;
  CALL(MPI_Win_lock_all(0, win));
  if (rank == 0) {
    CALL(MPI_Irecv(buffer, words, MPI_INT, 1, 6, MPI_COMM_WORLD, &request));
    while (memory[7] == 0) {
      nanosleep(&pause, NULL);
      CALL(MPI_Win_flush(0, win));
      CALL(MPI_Win_sync(win));
    }
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    CALL(MPI_Send(buffer, words, MPI_INT, 0, 6, MPI_COMM_WORLD));
    CALL(MPI_Accumulate(&one, 1, MPI_INT, 0, 7, 1, MPI_INT, MPI_REPLACE, win));
    CALL(MPI_Win_flush(0, win));
  }
  CALL(MPI_Win_unlock_all(win));
}

/* The other way round: rank 1 sits in a receive while rank 0 works on its memory. */
static void target_in_receive(MPI_Win win, int rank) {
  const int one = 1;
  int seen = 0;
  if (rank == 0) {
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    for (int i = 0; i < 1000; ++i) CALL(MPI_Accumulate(&one, 1, MPI_INT, 1, 5, 1, MPI_INT, MPI_SUM, win));
    CALL(MPI_Win_flush(1, win));
    CALL(MPI_Fetch_and_op(NULL, &seen, MPI_INT, 1, 5, MPI_NO_OP, win));
    CALL(MPI_Win_unlock(1, win));
    CHECK(seen == 1000, "the sum is %d", seen);
    CALL(MPI_Send(&seen, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
  } else if (rank == 1) {
    CALL(MPI_Recv(&seen, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = my_rank(MPI_COMM_WORLD);
  buffer = calloc(words, sizeof *buffer);
  int* memory = NULL;
  MPI_Win windows[2];
  CALL(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &windows[0]));
  int* own = calloc(16, sizeof *own);
  CALL(MPI_Win_create(own, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1]));
  memset(memory, 0, 64);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) {
    send_then_lock(windows[i], rank);
    send_then_fence(windows[i], rank);
    send_then_wait(windows[i], rank);
    poll_a_word(windows[i], rank);
    look_at_a_word_now_and_then(windows[i], rank, i == 0 ? memory : own);
    target_in_receive(windows[i], rank);
  }
  CALL(MPI_Win_free(&windows[1]));
  CALL(MPI_Win_free(&windows[0]));
  free(own);
  free(buffer);
  return finish();
}
